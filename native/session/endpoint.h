// Declares the interface of a session's endpoint, which handles calls as a client or as a server. A session
// has one endpoint for its whole life (client/client_endpoint.h or server/server_endpoint.h). A function that
// only the client or only the server needs does nothing by default. Session creates and drives the endpoint
// on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "session/flow.h"
#include "session/link/link.h"
#include "session/submission.h"

namespace rdma_rpc::session {

/// Counts the open calls of a session.
class CallCount {
 public:
  /// Returns the number of calls. A stream counts as one call; its parts are not counted.
  std::uint32_t calls() const { return all_ - parts_; }
  /// Counts parts of streams, too.
  std::uint32_t all() const { return all_; }

  /// `is_call` is false for a part of a stream.
  void begun(bool is_call) {
    ++all_;
    if (!is_call) ++parts_;
  }
  void ended(bool is_call) {
    --all_;
    if (!is_call) --parts_;
  }

 private:
  std::uint32_t all_ = 0, parts_ = 0;
};

class Endpoint {
 public:
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  virtual ~Endpoint() = default;

  const CallCount& count() const { return count_; }

  // --- from JS
  /// Handles one entry of the submissions array: a request or part of a client, or a response of a server.
  virtual void submit(const std::int32_t* words) = 0;
  /// Returns the token of the SENT event, or a negated Reason. After a negated Reason the caller keeps the
  /// send slot.
  virtual std::int32_t submit_bulk(const BulkSubmission& submission) = 0;
  /// Cancels this call. Only a client endpoint implements it.
  virtual void cancel(std::uint32_t /*slot*/, boundary::Reason /*reason*/) {}
  /// Requests the large message of this part, because the application waits for it. PART_WAITS has named the
  /// part.
  virtual void want(std::uint32_t call) = 0;
  /// Returns whether the handler of this call has not begun yet. Returns false when the call is over. Only a
  /// server endpoint implements it.
  virtual bool defer_handler(std::uint32_t /*call*/, bool /*deferred*/) { return false; }
  /// Returns whether the response to this call may be sent in segments. Returns false for a client, which
  /// sends no responses.
  virtual bool answers_in_segments(std::uint32_t /*call*/) { return false; }

  // --- from the peer
  /// Handles a request or a response. The endpoint owns the receive from now on. Returns false when a peer
  /// may not send such a frame to this side.
  virtual bool on_message(const wire::Frame& frame, const std::byte* data, ReceiveSlot receive_slot,
                          std::uint32_t invalidated_rkey) = 0;
  /// Handles a control frame that belongs to a call. Returns false when a peer may not send such a frame to
  /// this side.
  virtual bool on_control(const wire::Frame& frame) = 0;

  // --- completions
  /// Handles the completion of a work request. `done` says for what purpose the work request was posted.
  /// fabric::Wc explains `memory_gone`.
  virtual void on_done(SendQueue::Done done, bool memory_gone) = 0;

  // --- each turn
  /// Posts the frames that wait for room in the send queue.
  virtual void finish_turn() {}
  /// Returns the sets in which the session must be because of its calls. See SessionSets.
  virtual SetBits due() const = 0;
  /// Handles calls whose time limits have passed. Called only for sessions in SessionSets::timed.
  virtual void check_timeouts() {}
  /// Ends the session when its peer has kept calls or memory for too long. Called only for sessions in
  /// SessionSets::holding.
  virtual void check_held() = 0;
  /// Posts READs or WRITEs until the session has used up its credit of FairQueue.
  virtual Moved move(Bulk /*kind*/, std::int64_t& /*credit*/) { return Moved::all; }
  /// Returns true when calls have data to move but the session is in no queue for that data, which is a bug.
  virtual bool out_of_line() const { return false; }
  /// Delivers a request whose READs have completed. Returns false when the request must wait for entries that
  /// may still be in the completion queue (see Context::deliver_fetched).
  virtual bool deliver(const Shared::Fetched& /*fetched*/, bool /*queue_was_empty*/) { return true; }
  /// Prefetches a call slot that will be used soon. Step 2 prefetches the memory that leads to the slot, and
  /// the next step prefetches the slot.
  virtual void expect_call(int step, std::uint32_t slot) const = 0;

  // --- arena memory
  /// Tries again to get arena memory for a call that waits for it. Returns false when there is still no
  /// memory for the call.
  virtual bool retry_memory(std::uint32_t call) = 0;
  /// Returns true when the call lacks arena memory, for which all sessions wait. Returns false when it lacks
  /// a resource of this session. Valid only after retry_memory() has returned false.
  virtual bool lacks_arena(std::uint32_t call) = 0;
  /// Ends a call that has waited for memory too long; the session continues.
  virtual void refuse_memory(std::uint32_t call) = 0;
  /// Returns the number of bytes of arena memory for which the call in this slot waits, or 0 when the call
  /// does not wait.
  virtual std::uint32_t awaited_bytes(std::uint32_t /*slot*/) { return 0; }
  /// Returns the time for which the peer has been too slow while calls wait for memory (kReclaimNs). Returns
  /// 0 when the peer is fast enough or uses no memory.
  virtual std::uint64_t late_ns() { return 0; }
  /// Reclaims the memory that the peer keeps in use. Called only when other calls wait for memory and
  /// late_ns() exceeds kReclaimNs.
  virtual void reclaim_memory() {}

  // --- the end of the session
  /// Marks a call whose frame was never posted.
  virtual void note_unsent(std::uint32_t /*call*/) {}
  /// Ends the calls whose memory neither the peer nor a posted work request can access any more. The other
  /// calls end in end_all(), after the flushed completions have been polled.
  virtual void end_untouched() = 0;
  virtual void end_all() = 0;

 protected:
  explicit Endpoint(Link& link)
      : link_(link),
        shared_(link.shared()),
        options_(link.options()),
        capabilities_(link.capabilities()),
        send_(link.send()),
        staging_(link.staging()),
        number_(link.number()) {}

  Link& link_;
  Shared& shared_;
  const SessionOptions& options_;
  const fabric::Capabilities& capabilities_;
  SendQueue& send_;
  Staging* const staging_;
  const std::uint32_t number_;
  CallCount count_;
};

}  // namespace rdma_rpc::session

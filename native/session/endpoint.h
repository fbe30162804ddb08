// What a session does with calls, as a client or as a server. A session has one endpoint for all of its life
// (client/client_endpoint.h or server/server_endpoint.h), and Session calls it through this interface without
// asking which of the two it is. What only one of them has to do is done by nothing here. Made and driven by
// Session, on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "session/flow.h"
#include "session/link/link.h"
#include "session/submission.h"

namespace rdma_rpc::session {

/// How many calls of a session are open.
class CallCount {
 public:
  /// A stream is one, its parts are none.
  std::uint32_t calls() const { return all_ - parts_; }
  /// Parts of streams included.
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
  /// One entry of the submissions array: a request or part of a client, a response of a server.
  virtual void submit(const std::int32_t* words) = 0;
  /// Returns the token of the SENT event, or a negative Reason; then the send slot is still the caller's.
  virtual std::int32_t submit_bulk(const BulkSubmission& submission) = 0;
  /// The caller gives this call up. A server's calls are given up by their callers alone.
  virtual void cancel(std::uint32_t /*slot*/, boundary::Reason /*reason*/) {}
  /// The application waits for the large message of this part (PART_WAITS said which).
  virtual void want(std::uint32_t call) = 0;
  /// Whether the answer to that call may go in segments. A client answers nothing.
  virtual bool answers_in_segments(std::uint32_t /*call*/) { return false; }

  // --- from the peer
  /// A request or a response, whose receive belongs to the endpoint from here on. Returns false when only
  /// this side may send such a frame.
  virtual bool on_message(const wire::Frame& frame, const std::byte* data, ReceiveSlot receive_slot,
                          std::uint32_t invalidated_rkey) = 0;
  /// A control frame that belongs to a call. Returns false when only this side may send such a frame.
  virtual bool on_control(const wire::Frame& frame) = 0;

  // --- completions
  /// A work request with that purpose has completed. `memory_gone`: see fabric::Wc.
  virtual void on_done(SendQueue::Done done, bool memory_gone) = 0;

  // --- each turn
  /// Posts what waited for room.
  virtual void finish_turn() {}
  /// The sets that the session must be in for the sake of its calls. See SessionSets.
  virtual SetBits due() const = 0;
  /// For sessions in SessionSets::timed.
  virtual void check_timeouts() {}
  /// For sessions in SessionSets::holding: ends the session when its peer has kept calls or memory for too
  /// long.
  virtual void check_held() = 0;
  /// Its turn among the sessions of the context: posts READs or WRITEs as far as they fit the credit.
  virtual Moved move(Bulk /*kind*/, std::int64_t& /*credit*/) { return Moved::all; }
  /// Calls have data to move, and the session stands in no queue for it: a mistake.
  virtual bool out_of_line() const { return false; }
  /// Hands a request over whose READs are over. Returns false when that has to wait for what may still lie in
  /// the completion queue (see Context::deliver_fetched).
  virtual bool deliver(const Shared::Fetched& /*fetched*/, bool /*queue_was_empty*/) { return true; }
  /// A call slot is about to be used: fetches into the cache first what leads to it (step 2), then the slot.
  virtual void expect_call(int step, std::uint32_t slot) const = 0;

  // --- arena memory
  /// It came free for that call. Returns false when there is still none.
  virtual bool retry_memory(std::uint32_t call) = 0;
  /// Asked when retry_memory() has found none: whether the call lacks memory of the arena, which all wait
  /// for, and not something of this session alone.
  virtual bool lacks_arena(std::uint32_t call) = 0;
  /// The call has waited for memory too long: it ends, the session goes on.
  virtual void refuse_memory(std::uint32_t call) = 0;
  /// Bytes of arena memory that the call in this slot waits for, 0 when it waits for none.
  virtual std::uint32_t awaited_bytes(std::uint32_t /*slot*/) { return 0; }
  /// How long the peer has been too slow for calls that wait for memory (kGiveUpNs). Returns 0 when it is
  /// fast enough, or keeps no memory in use.
  virtual std::uint64_t late_ns() { return 0; }
  /// Other calls wait for memory, and late_ns() is beyond kGiveUpNs: takes back what the peer keeps in use.
  virtual void give_memory_up() {}

  // --- the end of the session
  /// The frame of this call was never posted.
  virtual void note_unsent(std::uint32_t /*call*/) {}
  /// Ends calls whose memory neither the peer nor a posted work request can touch. The others end when the
  /// flush has been polled: end_all().
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

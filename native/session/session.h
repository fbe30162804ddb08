// Implements one session: a link to one peer, and the endpoint that uses the link, which is a client's or a
// server's. Context creates and drives the session, on the context's thread only. This class handles the life
// of the session, and the frames and completions that do not belong to calls; the endpoints handle calls.
//
//   init ──connect──► connecting ──queue pair in RTS──► ready
//   any of them ──fail / close──► draining ──all work flushed──► down
//
// Calls may be submitted while the session is connecting; their frames wait.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "session/endpoint.h"
#include "session/link/link.h"

namespace rdma_rpc::session {

class Session final : public Link {
 public:
  /// Returns the reason why no session is possible on such a device with any options, or "" when a session is
  /// possible.
  static std::string why_unfit(const fabric::Capabilities& can, bool sealed = false);
  /// Returns null, with the reason in `error`, when the device refuses a resource.
  static std::unique_ptr<Session> open(Shared& shared, std::uint32_t number, const SessionOptions& options,
                                       std::string* error);
  ~Session() override;

  SessionState state() const { return state_; }
  const std::string& error() const { return error_; }
  /// Returns true when the peer or the network has ended the queue pair, and false when this side has.
  bool ended_there() const { return ended_there_; }
  std::vector<std::byte> local_address() const { return qp_->local_address(); }
  std::optional<fabric::PathProgress> path_progress() const { return qp_->path_progress(); }
  /// Connects. Returns "", or why the fabric cannot reach that peer. After "" one SESSION_UP event follows,
  /// or one SESSION_DOWN event if the connection fails.
  std::string connect(std::span<const std::byte> peer_address, const fabric::FirstWords* words = nullptr);

  /// Submits one entry of the submissions array. A call that cannot be sent gets a FAILED event.
  void submit(const std::int32_t* words);
  /// Returns the token of the SENT event, or a negated Reason.
  std::int32_t submit_bulk(BulkSubmission submission);
  /// Takes a slot for metadata and message of at most segmented_bytes() together. `call` is the call of a
  /// response, and is unset for a request. Returns -1 when no slot is free, or when the call has exposed
  /// memory, because its response is then sent as a large message.
  std::int32_t take_long_slot(std::optional<std::uint32_t> call);
  void cancel(std::uint32_t slot, boundary::Reason reason);
  /// Requests the large message of this part, because the application waits for it. PART_WAITS has named the
  /// part.
  void want(std::uint32_t call);
  /// Says that the handler of this call has not begun yet, or begins now. A call that is cancelled before its
  /// handler has begun is answered with *not run*. Returns false when the call is over.
  bool defer_handler(std::uint32_t call, bool deferred);
  void close(const std::string& reason) {
    if (error_.empty()) closed_ = endpoint_->count().all() == 0;
    fail(reason);
  }
  /// Returns true when the session ended with calls in flight, or when this side did not close it.
  bool failed() const { return !error_.empty() && !closed_; }

  // --- called by the context in each turn
  /// Prefetches the memory that the next operation on this call slot will touch. The function works in steps,
  /// because each step needs the cache lines that the previous step has fetched. The caller performs each
  /// step for a whole batch before the next step.
  static constexpr int kExpectSteps = 4;
  void expect(int step, std::uint32_t slot) const;
  /// Prefetches the memory that an incoming frame will touch, in the same steps.
  void expect_receive(int step, const fabric::Wc& wc) const;
  /// Checks, while connecting, whether the queue pair is connected or has failed.
  void check_connected();
  void on_receive(const fabric::Wc& wc);
  void on_send(const fabric::Wc& wc);
  /// Posts receives and sends. Returns true when there is more to do at once.
  bool finish_turn();
  /// Returns the sets in which the session must be between turns. See SessionSets.
  SetBits due() const;
  /// Returns true when the session's bulk data can be moved but the session is in no queue for bulk data,
  /// which is a bug. See Context::forgotten().
  bool out_of_line() const { return is_open() && endpoint_->out_of_line(); }
  /// Posts what JS has submitted, without touching receives (JS may be reading them).
  void post() {
    if (is_open()) post_now();
  }
  /// Checks the time limits of cancelled calls, and of a peer that returns no credits.
  void check_timeouts();
  /// Ends the session when a cancelled call has been pending release for too long, or when the peer makes no
  /// progress with bulk data.
  void check_held();
  /// Posts READs or WRITEs until the credit of FairQueue is used up. This function is called when it is the
  /// session's turn.
  Moved move(Bulk kind, std::int64_t& credit);
  /// Returns true while prepared requests or receives wait for another turn.
  bool has_unposted() const { return unposted_ || receives_.has_consumed(); }
  bool deliver(const Shared::Fetched& fetched, bool queue_was_empty);

  // --- arena memory, for calls in Shared::memory_waiters (see Endpoint)
  bool retry_memory(std::uint32_t call);
  bool lacks_arena(std::uint32_t call) { return endpoint_->lacks_arena(call); }
  void refuse_memory(std::uint32_t call);
  std::uint32_t awaited_bytes(std::uint32_t slot) { return endpoint_->awaited_bytes(slot); }
  std::uint64_t late_ns() { return is_open() ? endpoint_->late_ns() : 0; }
  void reclaim_memory();

  /// Returns how this session exposes memory. The result is never Exposure::automatic.
  Exposure security() const { return shared_.exposure; }
  std::uint32_t calls_in_flight() const { return endpoint_->count().calls(); }
  void report(telemetry::SessionRow& row) const {
    Link::report(row);
    row.in_flight = calls_in_flight();
  }
  std::uint32_t send_credits() const { return send_->credits(); }

  void fail(const std::string& reason) override;

 private:
  void receive_failed(const fabric::Wc& wc);
  Session(Shared& shared, std::uint32_t number, const SessionOptions& options);

  // connecting.cc
  void leave_connecting(SessionState next);
  void let_send();

  // session.cc
  template <class Made>
  std::string make_endpoint();
  bool is_own(boundary::SubOp op) const;
  void on_done(SendQueue::Done done, bool memory_gone);
  bool unseal(std::byte* frame, std::uint32_t& bytes, std::uint64_t& bulk_number);
  const char* end_of_segments(const wire::Frame& frame) const;
  void on_frame(ReceiveSlot receive_slot, std::uint32_t bytes, std::uint32_t invalidated_rkey);
  void maybe_down();

  bool closed_ = false;  ///< closed by this side, with no call under way
  bool ended_there_ = false;
  /// A client's or a server's endpoint, as SessionOptions::client determines. The endpoint is destroyed
  /// before the link that it uses.
  std::unique_ptr<Endpoint> endpoint_;
  std::size_t endpoint_bytes_ = 0;  ///< size of that object, see expect()
};

}  // namespace rdma_rpc::session

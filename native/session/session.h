// One session: a link to one peer and the endpoint that works on it, a client's or a server's. Created and
// driven by Context, on the context's thread only. Here are its life, and the frames and completions that are
// not the endpoint's; what a call is stands in the endpoints.
//
//   init ──connect──► connecting ──queue pair in RTS──► ready
//   any of them ──fail / close──► draining ──all work flushed──► down
//
// While it is connecting calls may be submitted; what they send waits.
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
  /// Why no session can be had on such a device, whatever its options are. Empty: it can.
  static std::string why_unfit(const fabric::Capabilities& can, bool sealed = false);
  /// Null, with the reason in `error`, when the device refuses a resource.
  static std::unique_ptr<Session> open(Shared& shared, std::uint32_t number, const SessionOptions& options,
                                       std::string* error);
  ~Session() override;

  SessionState state() const { return state_; }
  const std::string& error() const { return error_; }
  /// The peer, or what lies between, has ended its queue pair, and not this side: who runs it may know why.
  bool ended_there() const { return ended_there_; }
  std::vector<std::byte> local_address() const { return qp_->local_address(); }
  /// Empty, or why the fabric cannot reach that peer. Empty is followed by one SESSION_UP or, if it comes to
  /// nothing after all, one SESSION_DOWN.
  std::string connect(std::span<const std::byte> peer_address, const fabric::FirstWords* words = nullptr);

  /// One entry of the submissions array. Never fails: what cannot be sent ends as a FAILED event.
  void submit(const std::int32_t* words);
  /// The token of the SENT event, or a negative Reason.
  std::int32_t submit_bulk(BulkSubmission submission);
  /// A slot for metadata and message of segmented_bytes() at most, of a request or of the response to that
  /// call. -1: there is none, or the answer goes as a large message does, since the call has shown memory.
  std::int32_t take_long_slot(std::optional<std::uint32_t> call);
  void cancel(std::uint32_t slot, boundary::Reason reason);
  /// The application waits for the large message of this part (PART_WAITS said which).
  void want(std::uint32_t call);
  void close(const std::string& reason) {
    if (error_.empty()) closed_ = endpoint_->count().all() == 0;
    fail(reason);
  }
  /// It has ended as nobody wanted it: with calls under way, or by itself.
  bool failed() const { return !error_.empty() && !closed_; }

  // --- by the context, each turn
  /// Something is about to happen to this call slot of it, and to those of others: fetches what that will
  /// touch into the cache. In steps, each of which looks at what the one before it has fetched, so that each
  /// is made for all of a batch before the next one is.
  static constexpr int kExpectSteps = 4;
  void expect(int step, std::uint32_t slot) const;
  /// The same for what comes in.
  void expect_receive(int step, const fabric::Wc& wc) const;
  /// While connecting: whether the queue pair is connected by now, or never will be.
  void check_connected();
  void on_receive(const fabric::Wc& wc);
  void on_send(const fabric::Wc& wc);
  /// Posts receives and sends. True: there is more to do at once.
  bool finish_turn();
  /// The sets that it must be in between turns, by what it has still to do. See SessionSets.
  SetBits due() const;
  /// Bulk data of it can be moved, and nobody comes to do it: a mistake. See Context::forgotten().
  bool out_of_line() const { return is_open() && endpoint_->out_of_line(); }
  /// Posts what JS has submitted, without touching receives (JS may be reading them).
  void post() {
    if (is_open()) post_now();
  }
  /// Timeouts of cancelled calls, and of a peer that returns no credits.
  void check_timeouts();
  /// Ends the session when the peer has not let go of a call that its caller has given up for too long, or
  /// moves no bulk data.
  void check_held();
  /// Its turn among the sessions of the context: posts READs or WRITEs as far as they fit the credit.
  Moved move(Bulk kind, std::int64_t& credit);
  /// What was prepared, or receives, wait for another turn.
  bool has_unposted() const { return unposted_ || receives_.has_consumed(); }
  bool deliver(const Shared::Fetched& fetched, bool queue_was_empty);

  // --- arena memory, for calls in Shared::memory_waiters: see Endpoint
  bool retry_memory(std::uint32_t call);
  bool lacks_arena(std::uint32_t call) { return endpoint_->lacks_arena(call); }
  void refuse_memory(std::uint32_t call);
  std::uint32_t awaited_bytes(std::uint32_t slot) { return endpoint_->awaited_bytes(slot); }
  std::uint64_t late_ns() { return is_open() ? endpoint_->late_ns() : 0; }
  void give_memory_up();

  /// How this session exposes memory. Never automatic.
  Exposure security() const { return shared_.exposure; }
  std::uint32_t calls_in_flight() const { return endpoint_->count().calls(); }
  void report(telemetry::SessionRow& row) const {
    Link::report(row);
    row.in_flight = calls_in_flight();
  }
  std::uint32_t send_credits() const { return send_->credits(); }

  void fail(const std::string& reason) override;

 private:
  void receive_failed(fabric::WcStatus status);
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

  bool closed_ = false;  ///< by this side, with no call under way
  bool ended_there_ = false;
  /// A client's or a server's, by SessionOptions::client. Destroyed before the link that it uses.
  std::unique_ptr<Endpoint> endpoint_;
  std::size_t endpoint_bytes_ = 0;  ///< of that object: see expect()
};

}  // namespace rdma_rpc::session

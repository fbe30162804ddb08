// Implements the client endpoint of a session. The endpoint sends requests, receives responses, and manages
// the memory that calls expose. It guarantees that every submitted call gets exactly one last event, after
// which its memory can no longer be accessed. Session owns and drives this object on the context's thread.
// This class handles the life of a call and its messages (calls.cc). Separate classes handle the tasks that
// only calls with large messages need.
#pragma once

#include <cstdint>

#include "session/call_table.h"
#include "session/client/bulk_requests.h"
#include "session/client/call_memory.h"
#include "session/client/client_call.h"
#include "session/client/reply_buffers.h"
#include "session/client/revocation.h"
#include "session/endpoint.h"

namespace rdma_rpc::session {

class ClientEndpoint final : public Endpoint {
 public:
  explicit ClientEndpoint(Link& link);
  ~ClientEndpoint() override;
  /// Returns the largest number of frames that may wait in the send queue. Each call may have a request
  /// (removed when the call is cancelled), a CANCEL and a REPLY_BUFFER. (While a CANCEL waits, the next
  /// request on its call slot waits behind it.)
  static SendQueue::QueueLimits queue_limits(std::uint32_t call_slots) {
    return {std::size_t{call_slots} + 16, std::size_t{call_slots} * 2 + 16};
  }

  // --- from JS
  void submit(const std::int32_t* words) override;
  std::int32_t submit_bulk(const BulkSubmission& submission) override;
  void cancel(std::uint32_t slot, boundary::Reason reason) override;
  void want(std::uint32_t call) override { reply_buffers_.want(call); }

  // --- from the peer
  bool on_message(const wire::Frame& frame, const std::byte* data, ReceiveSlot receive_slot,
                  std::uint32_t invalidated_rkey) override;
  bool on_control(const wire::Frame& frame) override;
  void on_done(SendQueue::Done done, bool memory_gone) override;

  // --- each turn
  void finish_turn() override {
    if (waits_for_room()) move_waiting();
  }
  SetBits due() const override;
  void check_timeouts() override { revocation_.check_timeouts(); }
  void check_held() override { revocation_.check_held(); }
  void expect_call(int step, std::uint32_t slot) const override { calls_.expect(step, slot); }

  // --- arena memory, for the reply buffer of a call
  bool retry_memory(std::uint32_t call) override { return reply_buffers_.retry(call); }
  bool lacks_arena(std::uint32_t call) override { return reply_buffers_.lacks_arena(call); }
  void refuse_memory(std::uint32_t call) override { reply_buffers_.refuse(call); }
  std::uint32_t awaited_bytes(std::uint32_t slot) override { return reply_buffers_.awaited_bytes(slot); }

  // --- the end of the session
  void note_unsent(std::uint32_t call) override;
  /// Ends calls without exposed memory.
  void end_untouched() override;
  void end_all() override;

 private:
  /// Returns true while invalidations, requests or reply buffers wait for room. The room may belong to
  /// resources that all sessions share.
  bool waits_for_room() const { return revocation_.waits() || requests_.waits() || reply_buffers_.waits(); }
  void move_waiting();

  /// Records the latency of a call that has its response or was cancelled. Parts of streams wait for
  /// applications, so their times say nothing about the peer.
  void note_latency(std::uint32_t slot, const ClientCall& call, bool good) {
    link_.recorder().settle(wire::call_word(slot, call.generation), call.method, good,
                            telemetry::time_of(shared_.now_ns) - call.began);
    if (call.is_call()) shared_.latencies.note(call.method, true, call.began, shared_.now_ns, good);
  }
  /// `part` is the part header, or null for a call that does not belong to a stream.
  ClientCall& begin_call(std::uint32_t slot, std::uint32_t method, const wire::PartHeader* part);
  void on_response(const wire::Frame& frame, ReceiveSlot receive_slot, std::uint32_t invalidated_rkey);
  bool late_response(ClientCall& call, std::uint32_t generation);
  void expect_late_response(ClientCall& call);

  CallTable<ClientCall> calls_;
  std::uint32_t late_expected_ = 0;  ///< number of responses that cancelled calls may still get
  CallMemory memory_;
  ReplyBuffers reply_buffers_;
  Revocation revocation_;
  BulkRequests requests_;
};

}  // namespace rdma_rpc::session

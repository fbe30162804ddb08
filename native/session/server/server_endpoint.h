// Implements the server endpoint of a session. The endpoint receives requests and fetches their bulk data by
// READ. It sends responses and places their bulk data by WRITE. The server exposes no memory. The server
// moves the data, so it decides the pace. Session owns and calls this object on the context's thread. A call
// goes through the states of server_call.h. requests.cc receives it, fetching.cc gets memory for it,
// responses.cc answers it, and late.cc ends it when its peer is too slow. These functions belong to one
// class, because all of them change the state of the same call. Parts with their own state are classes:
// Transfers (which bytes move next), PeerWatch (calls that wait for the peer), FinishingResponses (responses
// that have been sent but not completed).
#pragma once

#include <cstdint>
#include <string>

#include "session/call_table.h"
#include "session/endpoint.h"
#include "session/server/finishing_responses.h"
#include "session/server/peer_watch.h"
#include "session/server/server_call.h"
#include "session/server/transfers.h"

namespace rdma_rpc::session {

class ServerEndpoint final : public Endpoint, private Transfers::Owner {
 public:
  explicit ServerEndpoint(Link& link);
  ~ServerEndpoint() override;
  /// Returns how many frames may wait in the send queue: responses, and for each call a reply buffer request
  /// and a refusal without a send slot.
  static SendQueue::QueueLimits queue_limits(std::uint32_t call_slots) {
    return {std::size_t{call_slots} * 2 + 16, std::size_t{call_slots} * 2 + 16};
  }

  // --- from JS
  void submit(const std::int32_t* words) override;
  std::int32_t submit_bulk(const BulkSubmission& submission) override;
  void want(std::uint32_t call) override;
  bool defer_handler(std::uint32_t call, bool deferred) override;
  /// Returns false when the client has exposed memory, because the client's call may then have to wait for
  /// its windows.
  bool answers_in_segments(std::uint32_t call) override {
    const std::uint32_t slot = wire::call_slot(call);
    return slot < options_.call_slots && !calls_[slot].exposed;
  }

  // --- from the peer
  bool on_message(const wire::Frame& frame, const std::byte* data, ReceiveSlot receive_slot,
                  std::uint32_t invalidated_rkey) override;
  bool on_control(const wire::Frame& frame) override;
  void on_done(SendQueue::Done done, bool memory_gone) override;

  // --- each turn
  Moved move(Bulk kind, std::int64_t& credit) override { return transfers_.move(kind, credit); }
  bool out_of_line() const override { return transfers_.out_of_line(); }
  SetBits due() const override { return due_if(watch_.waits(), kHolding); }
  /// Ends calls whose deadline has passed, and ends the session when its peer moves too little.
  void check_held() override;
  std::uint64_t late_ns() override;
  void reclaim_memory() override;
  bool deliver(const Shared::Fetched& fetched, bool queue_was_empty) override;
  void expect_call(int step, std::uint32_t slot) const override { calls_.expect(step, slot); }

  // --- arena memory, for a request
  bool retry_memory(std::uint32_t call) override;
  bool lacks_arena(std::uint32_t call) override;
  void refuse_memory(std::uint32_t call) override;

  // --- the end of the session
  /// Ends calls without posted work requests and frees their slots and memory.
  void end_untouched() override;
  void end_all() override;

 private:
  /// Ends the call and frees its slot.
  void set_idle(std::uint32_t slot, ServerCall& call, bool good) {
    if (call.state == ServerState::idle) return;
    if (call.waits_for_peer()) watch_.ends(call);
    call.state = ServerState::idle;
    count_.ended(call.is_call());
    link_.recorder().settle(wire::call_word(slot, call.generation), call.method, good,
                            telemetry::time_of(shared_.now_ns) - telemetry::time_of(call.arrived_ns));
    if (!call.is_call()) return;
    shared_.latencies.note(call.method, false, telemetry::time_of(call.arrived_ns), shared_.now_ns, good);
  }

  /// Counts the stream messages in a response that is about to be sent.
  void count_messages(const ServerCall& call, std::uint32_t send_slot, std::uint32_t metadata_bytes,
                      std::uint32_t status) {
    if (call.is_call()) return;
    shared_.stats.stream_messages_sent +=
        wire::messages_answered(shared_.slots.payload(send_slot), metadata_bytes, status);
  }

  /// Moves a call that has begun to this state.
  void enter(ServerCall& call, ServerState state);

  // late.cc
  std::uint64_t requests_late_ns();
  std::uint64_t asked_ns();
  UnreadStreams::Longest unread() const;
  void stop_late_requests();
  void refuse_late_answers();
  void refuse_messages_of(std::uint32_t stream);
  void end_overdue();
  void end_late(std::uint32_t slot, ServerCall& call);

  // requests.cc
  void on_request(const wire::Frame& frame, const std::byte* data, ReceiveSlot receive_slot);
  void on_chunk_read(ReadRef read, bool memory_gone);
  void on_cancel(const wire::Header& header);
  void on_bulk_request(std::uint32_t slot, const wire::Frame& frame, const std::byte* data,
                       ReceiveSlot receive_slot);
  void deliver_fetched(std::uint32_t slot);
  void stop_fetching(std::uint32_t slot, std::uint32_t status, std::string why) override;
  /// Sends a response that JS does not send: a refusal, or the confirmation of a CANCEL.
  void refuse(std::uint32_t slot, std::uint32_t status, bool ran, const std::string& text);
  void refuse_size(std::uint32_t slot, std::uint32_t bytes);
  void end_call(std::uint32_t slot, ServerCall& call);

  // fetching.cc
  bool start_fetch(std::uint32_t slot, memory::Use use);
  void wait_to_fetch(std::uint32_t slot);
  std::string why_waiting(std::uint32_t slot) const;
  void overflow_metadata(ServerBulk& bulk);
  void restore_metadata(ServerBulk& bulk, ReceiveSlot slot);
  bool refused_by_system(std::uint32_t slot);
  /// Returns true when a request waits because of the limit for one session (option quotas).
  bool beyond_quota(std::uint32_t slot) const;
  std::string over_quota() const;

  // responses.cc
  void on_reply_buffer(const wire::Frame& frame);
  void on_bulk_sent(std::uint32_t index);
  void start_writing(std::uint32_t slot);
  void stop_writing(std::uint32_t slot, std::uint32_t status, const std::string& text) override;
  void send_written_response(std::uint32_t slot) override;
  std::uint32_t keep_until_sent(std::uint32_t slot, ServerCall& call);
  void end_response(ServerBulk& bulk);

  CallTable<ServerCall> calls_;
  PeerWatch watch_;
  Transfers transfers_;
  FinishingResponses finishing_;
};

}  // namespace rdma_rpc::session

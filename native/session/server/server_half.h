// The server half of a session: requests in (their bulk fetched by READ), responses out (their bulk placed by
// WRITE). The server exposes no memory; it moves the data, so it decides the pace. Only a session that
// answers a connection has one. Owned and driven by Session, on the context's thread. Requests are in
// requests.cc, responses in responses.cc, transfers.cc moves bytes, fetching.cc waits for memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "session/call_table.h"
#include "session/flow.h"
#include "session/link/link.h"
#include "session/server/answers_under_way.h"
#include "session/server/reads_under_way.h"
#include "session/server/server_call.h"
#include "session/server/unread_streams.h"

namespace rdma_rpc::session {

class ServerHalf final : Half {
 public:
  explicit ServerHalf(Link& link);
  ~ServerHalf();
  /// What may wait in the send queue: responses; of each call a sink request, and a refusal without a send
  /// slot.
  static SendQueue::QueueLimits queue_limits(std::uint32_t call_slots) {
    return {std::size_t{call_slots} * 2 + 16, std::size_t{call_slots} * 2 + 16, 0};
  }

  // --- from JS
  void submit(const std::int32_t* words);
  std::int32_t submit_bulk(const BulkSubmission& submission);
  void want(std::uint32_t call);
  /// The client waits for this call's answer with memory that is shown, so it takes no segments.
  bool exposes(std::uint32_t call) {
    const std::uint32_t slot = wire::call_slot(call);
    return slot >= options_.call_slots || calls_[slot].exposed;
  }

  // --- from the peer
  void on_request(const wire::Frame& frame, const std::byte* data, ReceiveSlot receive_slot);
  void on_cancel(const wire::Header& header);
  void on_sink(const wire::Frame& frame);

  // --- completions
  void on_chunk_read(ReadRef read, bool vanished);
  void on_bulk_sent(std::uint32_t index);

  /// Calls that are open; a stream is one.
  std::uint32_t calls_in_flight() const { return under_way_ - parts_under_way_; }
  /// Parts of streams included.
  std::uint32_t under_way() const { return under_way_; }
  const CallTable<ServerCall>& calls() const { return calls_; }

  // --- each turn
  /// Its turn among the sessions of the context: posts READs or WRITEs as far as they fit the credit.
  Moved move(Bulk kind, std::int64_t& credit);
  /// Calls have data to move, and the session stands in no queue for it.
  bool out_of_line() const {
    return (!reading_calls_.empty() && !reading_.waits()) || (!writing_calls_.empty() && !writing_.waits());
  }
  /// Peers must move bulk data on: there is some under way, which check_bulk() is to look at.
  bool moves_bulk() const {
    return waiting_for_peer_ != 0 || reads_.count() != 0 || send_.write_bytes_ahead() != 0;
  }
  /// Ends calls whose deadline has passed meanwhile, and the session when its peer moves nothing.
  void check_bulk();
  /// How long the peer has been too slow for calls that wait for memory (kGiveUpNs); 0: it is fast enough, or
  /// keeps none in use.
  std::uint64_t late_ns();
  /// Other calls wait for memory, and late_ns() is beyond kGiveUpNs: takes back what the peer keeps in use.
  void give_memory_up();
  /// Hands a request over whose READs are over. False: a CANCEL may still lie in the completion queue that
  /// was there before the READs were (see Context::deliver_fetched).
  bool deliver(const Shared::Fetched& fetched, bool queue_was_empty);

  // --- arena memory
  /// It came free for that request. False: still none.
  bool retry_memory(std::uint32_t call);
  /// Asked when retry_memory() has found none: what it lacks is memory of the arena, which all wait for, and
  /// not something of this session alone (its share, a place for metadata).
  bool lacks_arena(std::uint32_t call);
  /// The request has waited too long: the call ends, the session goes on.
  void refuse_memory(std::uint32_t call);

  // --- the end of the session
  /// Ends calls of which nothing is posted: their slots and memory are free now, JS will not be asked again.
  void end_unposted();
  void end_all();

 private:
  /// The call is over, and its slot free.
  void set_idle(std::uint32_t slot, ServerCall& call, bool good) {
    if (call.state == ServerState::idle) return;
    if (call.waits_for_peer()) count_out(call);
    call.state = ServerState::idle;
    --under_way_;
    if (!call.is_call()) --parts_under_way_;
    link_.recorder().settle(wire::call_word(slot, call.generation), call.method, good,
                            telemetry::time_of(shared_.now_ns) - telemetry::time_of(call.arrived_ns));
    if (!call.is_call()) return;
    shared_.latencies.note(call.method, false, telemetry::time_of(call.arrived_ns), shared_.now_ns, good);
  }

  /// An answer has been handed over.
  void count_messages(const ServerCall& call, std::uint32_t send_slot, std::uint32_t metadata_bytes,
                      std::uint32_t status) {
    if (call.is_call()) return;
    shared_.stats.stream_messages_sent +=
        wire::messages_answered(shared_.slots.payload(send_slot), metadata_bytes, status);
  }

  /// A call that is under way goes on to that state.
  void enter(ServerCall& call, ServerState state);

  // overdue.cc
  std::uint64_t deadline_ns(const ServerCall& call) const;
  std::uint64_t end_ns(const ServerCall& call) const;
  void count_in(const ServerCall& call);
  void count_out(const ServerCall& call);
  void end_overdue();
  void end_late(std::uint32_t slot, ServerCall& call);

  // late.cc
  std::uint64_t requests_late_ns();
  std::uint64_t asked_ns();
  UnreadStreams::Longest unread() const;
  bool keeps_finished() const;
  void stop_late_requests();
  void refuse_late_answers();
  void refuse_messages_of(std::uint32_t stream);

  // requests.cc
  void on_bulk_request(std::uint32_t slot, const wire::Frame& frame, const std::byte* data,
                       ReceiveSlot receive_slot);
  void deliver_fetched(std::uint32_t slot);
  /// Answers without JS, or after it: a refusal, a cancel that must be confirmed. No answer where nobody
  /// waits for one.
  void refuse(std::uint32_t slot, std::uint32_t status, bool ran, const std::string& text);
  void refuse_size(std::uint32_t slot, std::uint32_t bytes);
  void end_call(std::uint32_t slot, ServerCall& call);

  // fetching.cc
  bool start_fetch(std::uint32_t slot, memory::Use use);
  void wait_to_fetch(std::uint32_t slot);
  std::string why_waiting(std::uint32_t slot) const;
  void spill_metadata(ServerBulk& bulk);
  void restore_metadata(ServerBulk& bulk, ReceiveSlot slot);
  bool refused_by_system(std::uint32_t slot);
  /// What its session may have of the arena, by the server's own word, is what a request lacks.
  bool beyond_quota(std::uint32_t slot) const;
  std::string over_quota() const;

  // responses.cc
  void send_written_response(std::uint32_t slot);
  std::uint32_t keep_until_sent(std::uint32_t slot, ServerCall& call);
  void end_response(ServerBulk& bulk);

  // transfers.cc
  void land();
  void stop_fetching(std::uint32_t slot, std::uint32_t status, std::string why);
  void start_writing(std::uint32_t slot);
  void stop_writing(std::uint32_t slot, std::uint32_t status, const std::string& text = "");
  /// Bytes of this call can be moved.
  void join(Bulk kind, std::uint32_t slot);
  /// A turn of one call within that of the session: what it takes is taken from both.
  struct Turn {
    std::int64_t& call;
    std::int64_t& session;
    Moved session_ended = Moved::all;
    /// The call keeps its place, since no other one of the session could go on either.
    Moved halt(Moved why) {
      session_ended = why;
      return Moved::halt;
    }
  };
  Moved may_post(Turn& turn) const;
  Moved move_read(std::uint32_t slot, Turn& turn);
  Moved move_write(std::uint32_t slot, Turn& turn);
  void charge(Turn& turn, std::uint32_t bytes);
  void place_carried(ServerBulk& bulk, std::byte* message);
  static void next_piece(ServerBulk& bulk);

  FairQueue reading_calls_, writing_calls_;  ///< by slot
  FairQueue::Member reading_, writing_;      ///< this session among those of the context
  CallTable<ServerCall> calls_;
  std::uint32_t under_way_ = 0, parts_under_way_ = 0;
  ReadsUnderWay reads_;
  std::uint32_t waiting_for_peer_ = 0;      ///< calls, see ServerCall::waits_for_peer()
  std::uint64_t next_end_ns_ = UINT64_MAX;  ///< none of them is overdue before
  std::uint64_t fetching_bytes_ = 0;        ///< of requests that are READ: their memory
  AnswersUnderWay answers_;
  UnreadStreams unread_;
  /// READs under way into staging memory, in order: they complete in order, and are copied from there.
  struct Landing {
    memory::BlockId block;
    std::byte* to;
    std::uint32_t bytes;
  };
  std::deque<Landing> landings_;
  /// Responses whose last work request has not completed.
  std::vector<std::unique_ptr<ServerBulk>> finishing_;
};

}  // namespace rdma_rpc::session

// The client half of a session: requests out, responses in, the memory that calls expose meanwhile, and the
// promise that every call submitted gets exactly one last event, after which no memory of it can be touched.
// Only a session that asks for connections has one. Owned and driven by Session, on the context's thread.
// Requests and responses are in calls.cc, exposing.cc shows memory to the peer, revocation.cc ends calls.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "session/call_table.h"
#include "session/client/client_call.h"
#include "session/link/link.h"

namespace rdma_rpc::session {

class ClientHalf final : Half {
 public:
  explicit ClientHalf(Link& link);
  ~ClientHalf();
  /// What may wait in the send queue: the request of each call, which is withdrawn when the call is given up;
  /// a CANCEL and a sink of each; a CANCEL of each that has exposed memory.
  static SendQueue::QueueLimits queue_limits(std::uint32_t call_slots) {
    return {std::size_t{call_slots} + 16, std::size_t{call_slots} * 2 + 16, call_slots};
  }

  // --- from JS
  void submit(const std::int32_t* words, bool part);
  std::int32_t submit_bulk(const BulkSubmission& submission);
  void cancel(std::uint32_t slot, boundary::Reason reason);
  void want(std::uint32_t call);

  // --- from the peer
  void on_response(const wire::Frame& frame, ReceiveSlot receive_slot, std::uint32_t invalidated_rkey);
  void on_sink_request(const wire::Header& header);

  // --- completions
  void on_cancel_arrived(std::uint32_t call);
  void on_revoked(std::uint32_t slot);

  // --- each turn
  /// Invalidations and requests that waited for room.
  void finish_turn() {
    if (waits_for_room()) move_waiting();
  }
  /// Some still wait, perhaps for what all sessions share.
  bool waits_for_room() const {
    return !revoke_backlog_.empty() || !deferred_.empty() || !deferred_sinks_.empty();
  }
  /// Calls wait for their CANCEL or for their windows: check_timeouts() is to be called.
  bool has_timeouts() const { return timeouts_pending_ != 0; }
  void check_timeouts();
  /// Calls are held that their callers have given up, see check_held().
  bool holds() const { return held_ != 0; }
  void check_held();
  /// Calls that are open; a stream is one.
  std::uint32_t calls_in_flight() const { return under_way_ - parts_under_way_; }
  /// Parts of streams included.
  std::uint32_t under_way() const { return under_way_; }
  const CallTable<ClientCall>& calls() const { return calls_; }

  // --- arena memory
  /// It came free for the sink of that call. False: still none.
  bool retry_memory(std::uint32_t call);
  /// Asked when retry_memory() has found none: what it lacks is memory of the arena, which all wait for, and
  /// not something of this session alone (its share, room to bind).
  bool lacks_arena(std::uint32_t call);
  void refuse_memory(std::uint32_t call) { link_.control(wire::FrameType::sink, call, 0); }
  /// Bytes of arena memory that the call waits for, 0: none.
  std::uint32_t awaited_bytes(std::uint32_t slot);

  // --- the end of the session
  /// The request of this call was never posted.
  void note_unsent(std::uint32_t call);
  /// Ends calls without exposed memory; the others end when the flush has been polled: end_all().
  void end_unexposed();
  void end_all();

  boundary::Event failed_event(std::uint32_t slot, boundary::Reason reason,
                               boundary::Processed processed) const;

 private:
  // client_half.cc
  void move_waiting();

  // calls.cc
  /// Of a call that has its answer, or that its caller gives up. Parts of streams wait for applications.
  void note_latency(std::uint32_t slot, const ClientCall& call, bool good) {
    link_.recorder().settle(wire::call_word(slot, call.generation), call.method, good,
                            telemetry::time_of(shared_.now_ns) - call.began);
    if (call.is_call()) shared_.latencies.note(call.method, true, call.began, shared_.now_ns, good);
  }
  /// `part`: its header, null for a call that has nothing to do with streams.
  ClientCall& begin_call(std::uint32_t slot, std::uint32_t method, const wire::PartHeader* part);
  /// It has ended for this session.
  void count_out(const ClientCall& call) {
    --under_way_;
    if (!call.is_call()) --parts_under_way_;
  }
  bool start_bulk_request(std::uint32_t slot);
  void defer(std::uint32_t slot);
  void start_deferred();
  bool late_response(ClientCall& call, std::uint32_t generation);

  // exposing.cc
  std::optional<std::uint32_t> expose(ClientBulk& bulk, const fabric::MemoryRegion& region,
                                      std::uint64_t addr, std::uint32_t length, std::uint32_t access);
  std::uint32_t carried_pieces(const ClientBulk& bulk) const;
  bool stage_request(ClientBulk& bulk);
  void release_staged(ClientCall& call);
  void choose_sink(ClientCall& call, memory::BlockId given);
  std::optional<wire::Sink> expose_sink(ClientBulk& bulk);

  // sinks.cc
  bool answer_sink_request(std::uint32_t slot);
  void wait_for_memory(std::uint32_t call);
  void want_sink(std::uint32_t slot);
  boundary::Event part_waits(std::uint32_t call) const;

  // revocation.cc
  void revoke_then(std::uint32_t slot, const boundary::Event& result);
  void issue_revokes(std::uint32_t slot);
  void settle(std::uint32_t slot, bool windows_intact);
  bool open_answer(boundary::Event& event, std::uint64_t number);
  void end_bulk(ClientCall& call, bool windows_intact);
  boundary::Event released_event(std::uint32_t slot) const;
  void start_timeout(ClientCall& call, boundary::Reason reason);
  void give_up(ClientCall& call);
  bool withdraw(ClientBulk& bulk);
  void give_memory_back(ClientBulk& bulk);
  void tell(std::uint32_t slot);
  bool wire_is_stuck();

  CallTable<ClientCall> calls_;
  std::uint32_t under_way_ = 0, parts_under_way_ = 0;
  std::uint32_t late_expected_ = 0;            ///< responses that cancelled calls may still get
  std::uint32_t timeouts_pending_ = 0;         ///< calls that check_timeouts() looks at
  std::uint32_t held_ = 0;                     ///< calls that check_held() looks at
  std::vector<std::uint32_t> deferred_;        ///< call slots of bulk requests that wait for room, in order
  std::vector<std::uint32_t> deferred_sinks_;  ///< call words; their sinks wait for staging memory, in order
  std::vector<std::uint32_t> revoke_backlog_;  ///< call slots with invalidations that wait for room
  /// On the awake clock, 0 none: somebody waits for a CANCEL to arrive since then, and nothing has completed
  /// since `still_at_`.
  std::uint64_t still_since_ns_ = 0;
  std::uint32_t still_at_ = 0;  ///< SendQueue::completed()
};

}  // namespace rdma_rpc::session

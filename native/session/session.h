// One session: a queue pair to one peer and all that happens on it. Frames in and out, credits, the two call
// tables, bulk transfers, and the promise that every call submitted gets exactly one last event, after which
// no memory of it can be touched. Created and driven by Context; on the context's thread only.
// client_calls.cc and server_calls.cc hold the two halves, docs/ARCHITECTURE.md says what is in the other
// files.
//
//   init ──connect──► connecting ──queue pair in RTS──► ready
//   any of them ──fail / close──► draining ──all work flushed──► down
//
// While it is connecting calls may be submitted; what they send waits.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "memory/arena.h"
#include "memory/mr_cache.h"
#include "session/boundary.h"
#include "session/calls.h"
#include "session/event_queue.h"
#include "session/exposure.h"
#include "session/predictor.h"
#include "session/send_queue.h"
#include "session/send_slots.h"
#include "session/staging.h"
#include "session/stats.h"
#include "session/wire.h"

namespace rdma_rpc::session {

class Session;

/// What the sessions of a context share. `now_ns` is the time of the current turn.
struct Shared {
  fabric::Device& device;
  fabric::CompletionQueue& cq;
  memory::Arena& arena;
  memory::MrCache& mr_cache;
  WindowPool& windows;
  SendSlots& slots;
  EventQueue& events;
  ResponsePredictor& predictor;
  Stats& stats;
  Exposure exposure;  ///< never automatic
  std::uint32_t slot_bytes;
  std::uint32_t counters_start;
  /// Why the system refused what the last call with no_memory or registration wanted; empty: it did not.
  std::string refusal{};
  std::uint64_t now_ns = 0;
  /// Runs only while this thread does (kAwakeStepNs): for limits of what a peer may take.
  std::uint64_t awake_ns = 0;
  std::uint32_t tokens = counters_start;
  /// Of a bulk submission: positive as an Int32, since refusals are negative.
  std::uint32_t take_token() { return tokens = tokens % 0x7fffffff + 1; }
  /// Calls that wait for arena memory, in order: session number and call word; `client`: a sink, else a
  /// request to fetch. `since_ns`: of `waited_ns`.
  struct Waiter {
    std::uint32_t session, call;
    bool client;
    std::uint64_t since_ns = 0;
  };
  BoundedQueue<Waiter> memory_waiters{kMemoryWaitersMax};
  std::uint64_t waited_ns = 0;   ///< time in which there were waiters and the thread could serve them
  std::uint32_t connecting = 0;  ///< sessions in that state
  /// Requests whose READs are over, on their way to JS. `received`: frames of the session until then.
  struct Fetched {
    std::uint32_t session, call, received;
  };
  std::vector<Fetched> fetched{};
};

struct SessionOptions {
  bool client = true;
  std::uint32_t inflight_max = 256;
  std::uint32_t max_message_bytes = 64u << 20;
  std::uint32_t peer_max_message_bytes = 64u << 20;
  /// Of the memory that the peer can touch, where there are no windows (see staging.h). It grows to that.
  /// 0: as much as the largest message takes, so that each can be sent, and at least kStagingBytesLeast.
  std::size_t staging_bytes = 0;
  /// Calls that may be open at once: those that `inflight_max` receives are for, and streams with their
  /// parts, which mostly wait for an application. 0: inflight_max.
  std::uint32_t call_slots = 0;
};

/// A piece as JS gives it: bytes, and the ArrayBuffer they lie in (key 0: arena memory).
struct GivenPiece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t key = 0;
  bool lent = true;  ///< the application has it too: false for blocks that JS has encoded a message into
  std::byte* buffer_data = nullptr;
  std::size_t buffer_bytes = 0;
  std::shared_ptr<const fabric::Presence> presence{};  ///< of the buffer, null for arena memory
};

struct BulkSubmission {
  boundary::SubOp op = boundary::SubOp::request;
  std::uint32_t call = 0, method = 0, slot = 0, metadata_bytes = 0, timeout_us = 0;
  std::vector<GivenPiece> pieces;
  memory::BlockId sink = memory::kNoBlock;
  memory::Use use = memory::Use::request;  ///< of a block that they are copied into
  /// The pieces make up an image: each begins at its own place, see wire::image_place().
  bool image = false;
  bool sink_only = false;  ///< request: what does not fit `sink` is refused, no other memory is granted
};

enum class SessionState : std::uint8_t { init, connecting, ready, draining, down };

class Session {
 public:
  /// Null, with the reason in `error`, when the device refuses a resource.
  /// Why no session can be had on such a device, whatever its options are. Empty: it can.
  static std::string why_unfit(const fabric::Capabilities& can);
  static std::unique_ptr<Session> open(Shared& shared, std::uint32_t number, const SessionOptions& options,
                                       std::string* error);
  ~Session();

  std::uint32_t number() const { return number_; }
  SessionState state() const { return state_; }
  const std::string& error() const { return error_; }
  std::vector<std::byte> local_address() const { return qp_->local_address(); }
  /// Empty, or why the fabric cannot reach that peer. Empty is followed by one SESSION_UP or, if it comes to
  /// nothing after all, one SESSION_DOWN.
  std::string connect(std::span<const std::byte> peer_address);

  /// One entry of the submissions array. Never fails: what cannot be sent ends as a FAILED event.
  void submit(const std::int32_t* words);
  /// The token of the SENT event, or a negative Reason.
  std::int32_t submit_bulk(BulkSubmission submission);
  void cancel(std::uint32_t slot, boundary::Reason reason);
  /// The application waits for the large message of this part (PART_WAITS said which).
  void want(std::uint32_t call);
  void close(const std::string& reason) { fail(reason); }

  // --- by the context, each turn
  /// While connecting: whether the queue pair is connected by now, or never will be.
  void check_connected();
  void on_receive(const fabric::Wc& wc);
  void on_send(const fabric::Wc& wc);
  /// A receive slot that JS has read: posted again with the next finish_turn().
  void recycle(std::uint32_t receive_slot) {
    (receive_slot < receive_depth_ ? consumed_ : parking_).push_back(receive_slot);
  }
  /// Posts receives and sends, moves bulk transfers on. True: there is more to do at once.
  bool finish_turn();
  /// Posts what JS has submitted, without touching receives (JS may be reading them).
  void post() {
    if (open()) post_now();
  }
  bool impatient() const { return impatient_ != 0 || stalled_since_ns_ != 0; }
  /// Receives that are neither posted nor about to be: with JS, or with requests that wait.
  std::uint32_t receives_kept() const {
    return receive_depth_ + kParkingSlots - receives_posted_ -
           static_cast<std::uint32_t>(consumed_.size() + parking_.size());
  }
  /// Patience with cancelled calls, and with a peer that returns no credits. Returns true while any call
  /// needs this timer.
  bool check_patience();
  /// Calls are held that their callers have given up, see check_held().
  bool holds() const { return held_ != 0; }
  /// Ends the session when the peer has not let go of one for too long.
  void check_held();
  /// Bulk data is to be moved with the next finish_turn().
  bool moves() const { return !transfers_.empty(); }
  /// Hands a request over whose READs are over. False: a CANCEL may still lie in the completion queue that
  /// was there before the READs were (see Context::deliver_fetched).
  bool deliver(const Shared::Fetched& fetched, bool queue_was_empty);
  /// Arena memory came free for the call (see Shared::memory_waiters). False: still none.
  bool retry_memory(const Shared::Waiter& waiter);
  bool lacks_arena(const Shared::Waiter& waiter);
  /// Bytes of arena memory that this call of the client half waits for, 0: none.
  std::uint32_t awaited_bytes(std::uint32_t slot);
  /// As which it holds memory of the arena.
  memory::OwnerId owner() const { return owner_; }
  /// It has waited too long: the call ends, the session goes on.
  void refuse_memory(const Shared::Waiter& waiter);

  /// What has been received, for JS. Where peers can go on writing to receives this is a copy.
  std::byte* receive_slab() const { return copies_ != nullptr ? copies_.get() : receive_memory_->data(); }
  std::size_t receive_slab_bytes() const { return receive_memory_->size(); }
  /// How this session exposes memory. Never automatic.
  Exposure security() const { return shared_.exposure; }
  std::uint32_t calls_in_flight() const { return calls_in_flight_; }
  std::uint32_t send_credits() const { return send_->credits(); }

 private:
  Session(Shared& shared, std::uint32_t number, const SessionOptions& options);
  /// Calls may be submitted, frames may come in.
  bool open() const { return state_ == SessionState::connecting || state_ == SessionState::ready; }

  // connecting.cc
  void leave_connecting(SessionState next);
  void let_send();

  // session.cc
  void fail(const std::string& reason);
  void protocol_error(const char* reason);
  std::string why_failed(const char* what, fabric::WcStatus status) const;
  bool open_staging(std::string* error);
  void on_done(SendQueue::Done done, bool vanished);
  void forget_waiters(std::optional<std::uint32_t> call = std::nullopt);
  bool has_waiters();
  void maybe_down();
  void post_now();
  void on_frame(std::uint32_t receive_slot, std::uint32_t bytes, std::uint32_t invalidated_rkey);
  /// Builds header and extensions before the payload of a slot and sends the frame.
  void send_message(std::uint32_t slot, wire::Header header, const wire::Sink* sink,
                    std::uint32_t metadata_bytes, std::uint32_t payload_bytes, std::uint32_t invalidate_rkey,
                    SendQueue::Done done);
  bool collect_pieces(const BulkSubmission& submission, std::vector<Piece>& pieces, boundary::Reason& reason);
  bool stage(const BulkSubmission& submission, std::uint64_t extent, std::vector<Piece>& pieces);
  bool copy_pieces(const BulkSubmission& submission, std::vector<Piece>& pieces);
  void release_pieces(std::vector<Piece>& pieces);
  void emit_sent(std::uint32_t& token);
  void control(wire::FrameType type, std::uint32_t call, std::uint32_t method,
               const wire::Sink* sink = nullptr, SendQueue::Done done = SendQueue::Done());

  // client_calls.cc
  void submit_request(const std::int32_t* words, bool part);
  std::int32_t submit_bulk_request(const BulkSubmission& submission);
  ClientCall& begin_call(std::uint32_t slot, std::uint32_t method, bool part);
  bool start_bulk_request(std::uint32_t slot);
  void defer(std::uint32_t slot);
  void start_deferred();
  void on_cancel_arrived(std::uint32_t call);
  void on_response(const wire::Frame& frame, std::uint32_t receive_slot, std::uint32_t invalidated_rkey);
  bool late_response(ClientCall& call, std::uint32_t generation);
  std::uint32_t place() const { return number_ & (kSessionPlaces - 1); }
  std::uint32_t slot_of(const ClientCall& call) const {
    return static_cast<std::uint32_t>(&call - client_calls_.data());
  }

  // exposing.cc
  std::optional<std::uint32_t> expose(ClientBulk& bulk, const fabric::MemoryRegion& region,
                                      std::uint64_t addr, std::uint32_t length, std::uint32_t access);
  bool stage_request(ClientBulk& bulk);
  void release_staged(ClientCall& call);
  void choose_sink(ClientCall& call, memory::BlockId given);
  std::optional<wire::Sink> expose_sink(ClientBulk& bulk);
  void on_sink_request(const wire::Header& header);
  bool answer_sink_request(std::uint32_t slot);
  void wait_for_memory(std::uint32_t call);
  void want_sink(std::uint32_t slot);
  boundary::Event part_waits(std::uint32_t call) const;

  // revocation.cc
  void revoke_then(std::uint32_t slot, const boundary::Event& result);
  void issue_revokes(std::uint32_t slot);
  void on_revoked(std::uint32_t slot);
  void settle(std::uint32_t slot, bool windows_intact);
  boundary::Event failed_event(std::uint32_t slot, boundary::Reason reason, boundary::Sent sent) const;
  void end_client_bulk(ClientCall& call, bool windows_intact);
  boundary::Event released_event(std::uint32_t slot) const;
  void give_up(ClientCall& call);
  void tell(std::uint32_t slot);
  bool wire_is_stuck();

  // server_calls.cc
  void submit_response(const std::int32_t* words);
  std::int32_t submit_bulk_response(const BulkSubmission& submission);
  void on_request(const wire::Frame& frame, const std::byte* data, std::uint32_t receive_slot);
  void on_bulk_request(std::uint32_t slot, const wire::Frame& frame, const std::byte* data,
                       std::uint32_t receive_slot);
  bool start_fetch(std::uint32_t slot, memory::Use use);
  void wait_to_fetch(std::uint32_t slot);
  std::string why_waiting(std::uint32_t slot) const;
  void park(ServerBulk& bulk);
  void unpark(ServerBulk& bulk);
  void on_chunk_read(std::uint32_t slot, bool vanished);
  void land();
  void deliver_fetched(std::uint32_t slot);
  void on_cancel(const wire::Header& header);
  void stop_writing(std::uint32_t slot, std::uint32_t status, const std::string& text = "");
  std::uint32_t keep_until_sent(ServerCall& call);
  void on_sink(const wire::Frame& frame);
  void on_bulk_sent(std::uint32_t index);
  void send_written_response(std::uint32_t slot);
  void refuse(std::uint32_t slot, std::uint32_t status, bool ran, const std::string& text);
  void refuse_size(std::uint32_t slot, std::uint32_t bytes);
  void end_server_call(ServerCall& call);
  void end_response(ServerBulk& bulk);
  bool move_transfers();
  bool refused_by_system(std::uint32_t slot);
  static bool give_up(ServerCall& call, std::string why);
  bool move_read(std::uint32_t slot, std::uint32_t& budget);
  bool move_write(std::uint32_t slot, std::uint32_t& budget);
  static void next_piece(ServerBulk& bulk);
  std::uint32_t chunk_bytes() const;

  Shared& shared_;
  const std::uint32_t number_;
  const SessionOptions options_;
  const fabric::Capabilities& capabilities_;
  SessionState state_ = SessionState::init;
  std::string error_;
  const memory::OwnerId owner_;

  // Destroyed from the bottom up: the queue pair goes before the memory that its receives lie in.
  std::unique_ptr<fabric::HostMemory> receive_memory_;
  std::unique_ptr<std::byte[]> copies_;  ///< as long as that, or null
  std::unique_ptr<fabric::MemoryRegion> receive_region_;
  std::unique_ptr<Staging> staging_;  ///< client: on that rung; server: where READs may land nowhere else
  std::unique_ptr<fabric::QueuePair> qp_;
  std::unique_ptr<SendQueue> send_;

  std::uint32_t receive_depth_, receive_stride_, receives_posted_ = 0;
  std::vector<std::uint32_t> consumed_;
  std::vector<std::uint32_t> parking_;  ///< free slots behind the receives, see kParkingSlots
  std::vector<fabric::RecvWr> repost_;
  bool drained_ = false, unposted_ = false;
  bool heard_ = false;  ///< a frame has come in

  std::vector<ClientCall> client_calls_;
  std::vector<ServerCall> server_calls_;
  std::uint32_t calls_in_flight_ = 0;
  std::uint32_t late_expected_ = 0;  ///< responses that cancelled calls may still get
  /// On the awake clock, 0 none: frames wait since then, and no credit has come.
  std::uint64_t stalled_since_ns_ = 0;
  /// The same: somebody waits for a CANCEL to arrive since then, and nothing has completed since `still_at_`.
  std::uint64_t still_since_ns_ = 0;
  std::uint32_t still_at_ = 0;                 ///< SendQueue::completed()
  std::uint32_t impatient_ = 0;                ///< calls that check_patience() looks at
  std::uint32_t held_ = 0;                     ///< calls that check_held() looks at
  std::uint32_t received_ = 0;                 ///< frames, counting on
  std::vector<std::uint32_t> deferred_;        ///< call slots of bulk requests that wait for room, in order
  std::vector<std::uint32_t> deferred_sinks_;  ///< call words; their sinks wait for staging memory, in order
  std::vector<std::uint32_t> revoke_backlog_;  ///< call slots with invalidations that wait for room
  std::uint32_t reads_outstanding_ = 0;
  /// READs under way into staging memory, in order: they complete in order, and are copied from there.
  struct Landing {
    memory::BlockId block;
    std::byte* to;
    std::uint32_t bytes;
  };
  std::deque<Landing> landings_;
  std::vector<std::unique_ptr<ServerBulk>>
      finishing_;                          ///< responses whose last work request has not completed
  BoundedQueue<std::uint32_t> transfers_;  ///< call slots of the server half with bytes to move, in order
};

}  // namespace rdma_rpc::session

// What the sessions of a context share, and what a session is asked for. Made by Context, used by the
// sessions and their halves; on the context's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "memory/arena.h"
#include "memory/mr_cache.h"
#include "session/boundary.h"
#include "session/bounded_queue.h"
#include "session/brief_messages.h"
#include "session/event_queue.h"
#include "session/exposure.h"
#include "session/flow.h"
#include "session/link/receive_pool.h"
#include "session/link/sealing.h"
#include "session/link/shared_receives.h"
#include "session/predictor.h"
#include "session/send_slots.h"
#include "session/session_set.h"
#include "session/stats.h"
#include "session/whole_messages.h"
#include "telemetry/latencies.h"
#include "telemetry/recorder.h"

namespace rdma_rpc::session {

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
  telemetry::Latencies& latencies;
  telemetry::EventRings event_rings;
  Exposure exposure;  ///< never automatic
  std::uint32_t slot_bytes;
  std::uint32_t segmented_bytes;  ///< of which messages that are no longer go in segments
  std::uint32_t counters_start;
  std::uint32_t shared_from;  ///< queue pairs of the device, see kSharedFrom
  /// For JS: what the last bulk submission with no_memory asked of the arena in vain.
  std::int32_t& short_bytes;
  Flow flow;
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
  SessionSets sets{};
  WholeMessages whole{};
  BriefMessages brief{};
  ReceivePool receive_pool{device};
  SharedReceives shared_receives{device, cq, SendSlots::stride_for(slot_bytes)};
  /// Requests whose READs are over, on their way to JS. `received`: frames of the session until then; `mark`:
  /// of what lay in the completion queue then (QueuePair::message_mark()).
  struct Fetched {
    std::uint32_t session, call, received;
    std::uint64_t mark;
  };
  std::vector<Fetched> fetched{};
  /// Only while they are posted, see Link::post_receives().
  std::vector<fabric::RecvWr> receives{};
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
  /// Both sides begin with kCertainReceives credits and take what more they get (WIRE §4): receives may be
  /// shared.
  bool grants = false;
  /// Arena memory that large requests of a client may hold at once, read or not yet let go of by handlers;
  /// and as much again for large answers to it. 0: as much as its share.
  std::size_t arena_max_bytes = 0;
  /// A server's deadline for calls whose clients set none, and its longest deadline. 0 where there is no such
  /// limit.
  std::uint64_t timeout_default_us = 0, timeout_max_us = 0;
  /// Frames and bulk messages are sealed; without: sent as they are.
  std::optional<SealOptions> seal{};
  /// What the peer's receives hold; 0: as much as those of this side.
  std::uint32_t peer_slot_bytes = 0;
  /// It puts messages together that come in segments (WIRE §2.5).
  bool peer_takes_segments = false;
  /// It takes pieces that a request carries in its frame (WIRE §2.1).
  bool peer_takes_carried = false;
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
  bool text = false;    ///< in the text room (boundary.h), which the next message is encoded into
  bool copied = false;  ///< it has no key: all of the message is copied to the arena
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

}  // namespace rdma_rpc::session

// The resources that the sessions of a context share: device objects, memory, slots, queues and clocks. A
// Context has one, which it is made of, and its sessions and their endpoints use it; on the context's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "memory/arena.h"
#include "memory/mr_cache.h"
#include "session/boundary.h"
#include "session/context_options.h"
#include "session/event_queue.h"
#include "session/exposure.h"
#include "session/flow.h"
#include "session/link/receive_pool.h"
#include "session/link/shared_receives.h"
#include "session/memory_waiters.h"
#include "session/predictor.h"
#include "session/reassembled_messages.h"
#include "session/send_slots.h"
#include "session/session_set.h"
#include "session/short_messages.h"
#include "session/stats.h"
#include "telemetry/counters_page.h"
#include "telemetry/latencies.h"
#include "telemetry/recorder.h"

namespace rdma_rpc::session {

/// The arrays that JS and native code both see (boundary.h).
struct BoundaryArrays {
  explicit BoundaryArrays(std::uint32_t send_slots)
      : control(boundary::ctl::words),
        submissions(std::size_t{kSubmissionsMax} * boundary::sub::words),
        events(std::size_t{kEventsMax} * boundary::ev::words),
        free_slots(send_slots),
        session_slots(std::size_t{kSessionsMax} * boundary::slots::words) {}

  std::vector<std::int32_t> control, submissions, events, free_slots, session_slots;
};

/// Resources that the device or the system may refuse, so they are allocated before the context.
struct Resources {
  std::shared_ptr<fabric::Device> device;
  std::unique_ptr<fabric::CompletionQueue> cq;
  std::unique_ptr<fabric::HostMemory> slot_memory;
  std::unique_ptr<fabric::MemoryRegion> slot_region;
  std::unique_ptr<telemetry::CountersPage> page;
};

struct Shared {
  /// In `options` every value is set; no default is chosen here.
  Shared(Resources resources, const ContextOptions& options);
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  /// The device is gone, and so are all sessions. Only blocks that are leased stay, as memory.
  void leave_device();

  // Destroyed from the bottom up: everything before the device.
  std::shared_ptr<fabric::Device> device;       ///< null once it has been left
  std::unique_ptr<fabric::CompletionQueue> cq;  ///< likewise
  const Exposure exposure;                      ///< never automatic
  const std::uint32_t slot_bytes;
  const std::uint32_t segmented_bytes;  ///< messages that are no longer go in segments
  const std::uint32_t counters_start;
  const std::uint32_t shared_from;  ///< queue pairs of the device, see kSharedFrom
  memory::Arena arena;
  memory::MrCache mr_cache;
  WindowPool windows;
  BoundaryArrays arrays;
  SendSlots slots;
  EventQueue events;
  ResponsePredictor predictor;
  Stats stats;
  std::unique_ptr<telemetry::CountersPage> page;
  telemetry::Latencies& latencies;
  telemetry::EventRings event_rings;
  Flow flow;
  /// For JS: the bytes that the arena refused to the last bulk submission with no_memory.
  std::int32_t& short_bytes;
  /// Why the system refused memory to the last call with no_memory or registration; empty when it did not.
  std::string refusal{};
  /// The time of the current turn.
  std::uint64_t now_ns = 0;
  /// Runs only while this thread does (kAwakeStepNs): for limits of what a peer may take.
  std::uint64_t awake_ns = 0;
  std::uint32_t tokens;
  /// Returns the token of a bulk submission. It is positive as an Int32, since refusals are negative.
  std::uint32_t take_token() { return tokens = tokens % 0x7fffffff + 1; }
  MemoryWaiters memory_waiters;
  std::uint32_t connecting = 0;  ///< sessions in that state
  SessionSets sets{};
  ReassembledMessages reassembled_messages{};
  ShortMessages short_messages{};
  ReceivePool receive_pool;
  SharedReceives shared_receives;
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

}  // namespace rdma_rpc::session

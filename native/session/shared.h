// Holds the resources that the sessions of a context share: device objects, memory, slots, queues and clocks.
// Each Context contains one Shared, which its sessions and their endpoints use, on the context's thread.
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

/// The arrays that JS and native code share (boundary.h).
struct BoundaryArrays {
  explicit BoundaryArrays(std::uint32_t send_slots)
      : control(boundary::ctl::words),
        submissions(std::size_t{kSubmissionsMax} * boundary::sub::words),
        events(std::size_t{kEventsMax} * boundary::ev::words),
        free_slots(send_slots),
        session_slots(std::size_t{kSessionsMax} * boundary::slots::words) {}

  std::vector<std::int32_t> control, submissions, events, free_slots, session_slots;
};

/// Resources that the device or the system may refuse. These resources are allocated before the context,
/// because the allocation may fail and the creation of the context must not.
struct Resources {
  std::shared_ptr<fabric::Device> device;
  std::unique_ptr<fabric::CompletionQueue> cq;
  std::unique_ptr<fabric::HostMemory> slot_memory;
  std::unique_ptr<fabric::MemoryRegion> slot_region;
  std::unique_ptr<telemetry::CountersPage> page;
};

struct Shared {
  /// Every value in `options` must be set; this constructor chooses no defaults.
  Shared(Resources resources, const ContextOptions& options);
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  /// Closes the device, after all sessions have ended. Leased blocks stay as plain memory.
  void leave_device();

  // Members are destroyed in reverse order, so that the device goes last.
  std::shared_ptr<fabric::Device> device;       ///< null after leave_device()
  std::unique_ptr<fabric::CompletionQueue> cq;  ///< null after leave_device()
  const Exposure exposure;                      ///< never automatic
  const std::uint32_t slot_bytes;
  const std::uint32_t segmented_bytes;  ///< limit of messages that are sent in segments
  const std::uint32_t counters_start;
  const std::uint32_t shared_from;  ///< number of queue pairs of the device, see kSharedFrom
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
  /// The number of bytes that the arena refused to the last bulk submission with Reason no_memory. JS reads
  /// it.
  std::int32_t& short_bytes;
  /// The reason why the system refused memory to the last call that failed with Reason no_memory or
  /// registration; empty when the system was not the cause.
  std::string refusal{};
  /// The time at which the current turn began.
  std::uint64_t now_ns = 0;
  /// A clock that runs only while this thread runs (kAwakeStepNs), for limits of a peer's time.
  std::uint64_t awake_ns = 0;
  std::uint32_t tokens;
  /// Returns the token of a bulk submission. A token is positive as an Int32, because refusals are negative.
  std::uint32_t take_token() { return tokens = tokens % 0x7fffffff + 1; }
  MemoryWaiters memory_waiters;
  std::uint32_t connecting = 0;  ///< number of sessions in the state `connecting`
  SessionSets sets{};
  ReassembledMessages reassembled_messages{};
  ShortMessages short_messages{};
  ReceivePool receive_pool;
  SharedReceives shared_receives;
  /// Requests whose READs are complete, on their way to JS. `received` is the number of frames that the
  /// session had received at that time. `mark` identifies the entries that lay in the completion queue at
  /// that time (QueuePair::message_mark()).
  struct Fetched {
    std::uint32_t session, call, received;
    std::uint64_t mark;
  };
  std::vector<Fetched> fetched{};
  /// A buffer that is used only while receives are posted, see Link::post_receives().
  std::vector<fabric::RecvWr> receives{};
};

}  // namespace rdma_rpc::session

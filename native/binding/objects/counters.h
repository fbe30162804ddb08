// Lists the counters of a context and of its pump by name, for Stats of runtime/native/stats.ts and for the
// counters page (telemetry/counters_page.h). The engine reads them on the JS thread.
#pragma once

#include <array>
#include <cstdint>

#include "binding/event_loop/pump.h"
#include "session/context.h"

namespace rdma_rpc::binding {

struct Counter {
  const char* name;
  std::uint64_t value;
};

inline auto counters_of(session::Context& context, const PumpCounters& pump) {
  const session::Stats& stats = context.stats();
  const memory::ArenaCounters arena = context.arena().counters();
  const memory::MrCacheCounters mr = context.mr_cache().counters();
  // After leave_device() the device no longer exists, so its counters are 0.
  const fabric::DeviceCounters device =
      context.has_device() ? context.device().counters() : fabric::DeviceCounters{};
  // This memory is registered but was not allocated by a device.
  const std::uint64_t shared_bytes = context.has_device() ? context.shared_receives().registered_bytes() : 0;
  return std::array{
      Counter{"calls", stats.calls},
      Counter{"requests", stats.requests},
      Counter{"streamMessagesSent", stats.stream_messages_sent},
      Counter{"streamMessagesReceived", stats.stream_messages_received},
      Counter{"inlineSends", stats.inline_sends},
      Counter{"eagerSends", stats.eager_sends},
      Counter{"segmentedMessages", stats.segmented_messages},
      Counter{"bulkReads", stats.bulk_reads},
      Counter{"bulkReadBytes", stats.bulk_read_bytes},
      Counter{"bulkWrites", stats.bulk_writes},
      Counter{"bulkWriteBytes", stats.bulk_write_bytes},
      Counter{"bulkRequests", stats.bulk_requests},
      Counter{"bulkResponses", stats.bulk_responses},
      Counter{"replyBuffersPredicted", stats.reply_buffers_predicted},
      Counter{"replyBuffersAsked", stats.reply_buffers_asked},
      Counter{"sentBytes", stats.sent_bytes},
      Counter{"receivedBytes", stats.received_bytes},
      Counter{"retries", static_cast<std::uint32_t>(context.control()[session::boundary::ctl::retries])},
      Counter{"completions", stats.completions},
      Counter{"stalls", stats.stalls},
      Counter{"stalledMs", stats.stalled_ns / 1'000'000},
      Counter{"creditFrames", stats.credit_frames},
      Counter{"protocolErrors", stats.protocol_errors},
      Counter{"lateResponses", stats.late_responses},
      Counter{"callsReleasedLate", stats.calls_released_late},
      Counter{"callsPendingRelease", stats.calls_pending_release},
      Counter{"mrHits", mr.hits},
      Counter{"mrMisses", mr.misses},
      Counter{"mrEvictions", mr.evictions + mr.expired},
      Counter{"mrBackground", mr.background},
      Counter{"mrBytes", mr.bytes},
      Counter{"arenaBytes", arena.bytes_reserved},
      Counter{"arenaLeasedBytes", arena.bytes_leased},
      Counter{"arenaLeasedBlocks", arena.blocks_leased},
      Counter{"sendSlotsFree", context.slots().free()},
      Counter{"memoryWaiters", context.memory_waiters()},
      Counter{"sessions", context.session_count()},
      Counter{"queuePairs", device.queue_pairs},
      Counter{"memoryRegions", device.memory_regions},
      Counter{"memoryBytes", device.memory_bytes + shared_bytes},
      Counter{"memoryWindows", device.memory_windows},
      Counter{"openFds", device.open_fds},
      Counter{"turns", pump.turns},
      Counter{"batches", pump.batches},
      Counter{"sleeps", pump.sleeps},
      Counter{"loopLagMaxUs", pump.lag_max_ns / 1'000},
  };
}

}  // namespace rdma_rpc::binding

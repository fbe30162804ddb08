// The counters of a context as a JS object: Stats of runtime/native.ts. Made when JS asks, on its
// thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <utility>

#include "binding/event_loop/pump.h"
#include "session/context.h"

namespace rdma_rpc::binding {

inline Napi::Object stats_object(Napi::Env env, session::Context& context, const PumpCounters& pump) {
  const session::Stats& stats = context.stats();
  const memory::ArenaCounters arena = context.arena().counters();
  const memory::MrCacheCounters mr = context.mr_cache().counters();
  // After leave_device() nothing of it is left to count.
  const fabric::DeviceCounters device =
      context.has_device() ? context.device().counters() : fabric::DeviceCounters{};
  const std::pair<const char*, std::uint64_t> values[] = {
      {"calls", stats.calls},
      {"requests", stats.requests},
      {"inlineSends", stats.inline_sends},
      {"eagerSends", stats.eager_sends},
      {"bulkReads", stats.bulk_reads},
      {"bulkReadBytes", stats.bulk_read_bytes},
      {"bulkWrites", stats.bulk_writes},
      {"bulkWriteBytes", stats.bulk_write_bytes},
      {"bulkRequests", stats.bulk_requests},
      {"bulkResponses", stats.bulk_responses},
      {"grantsPredicted", stats.sinks_predicted},
      {"grantsAsked", stats.sinks_asked},
      {"creditFrames", stats.credit_frames},
      {"protocolErrors", stats.protocol_errors},
      {"lateResponses", stats.late_responses},
      {"callsHeld", stats.calls_held},
      {"callsHeldNow", stats.held_now},
      {"mrHits", mr.hits},
      {"mrMisses", mr.misses},
      {"mrEvictions", mr.evictions + mr.expired},
      {"mrBytes", mr.bytes},
      {"arenaBytes", arena.bytes_reserved},
      {"arenaLeasedBytes", arena.bytes_leased},
      {"arenaLeasedBlocks", arena.blocks_leased},
      {"sessions", context.session_count()},
      {"queuePairs", device.queue_pairs},
      {"memoryRegions", device.memory_regions},
      {"memoryWindows", device.memory_windows},
      {"openFds", device.open_fds},
      {"turns", pump.turns},
      {"batches", pump.batches},
      {"sleeps", pump.sleeps},
  };
  auto result = Napi::Object::New(env);
  for (const auto& [name, value] : values) result.Set(name, static_cast<double>(value));
  return result;
}

}  // namespace rdma_rpc::binding

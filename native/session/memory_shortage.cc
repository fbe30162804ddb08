// See memory_shortage.h.
#include "session/memory_shortage.h"

#include <utility>

namespace rdma_rpc::session {

namespace ctl = boundary::ctl;
using boundary::Event;
using boundary::EvKind;

void MemoryShortage::notify_free() {
  const std::uint64_t changes = shared_.arena.counters().releases + shared_.mr_cache.finished();
  if (std::exchange(changes_, changes) == changes) return;
  shared_.arrays.control[ctl::want_memory] = 0;
  notified_refusals_ = shared_.arena.counters().refused_for_peers;
  shared_.events.emit(Event::of(EvKind::memory_free));
}

void MemoryShortage::notify_short() {
  if (std::exchange(notified_short_, true)) return;
  shared_.events.emit(Event::of(EvKind::memory_short));
}

/// Returns std::nullopt when no call waits for memory that is reserved for peers. Otherwise returns the value
/// that ArenaCounters::refused_for_peers had before these calls were refused.
std::optional<std::uint64_t> MemoryShortage::refused_since() {
  const std::uint64_t refusals = shared_.arena.counters().refused_for_peers;
  const std::uint64_t before = std::exchange(checked_refusals_, refusals);
  // Calls that wait in JS were last retried at MEMORY_FREE. Calls that wait in native code are retried in
  // each iteration.
  if (shared_.arrays.control[ctl::want_memory] != 0 && refusals != notified_refusals_)
    return notified_refusals_;
  if (shared_.memory_waiters.size() != 0 && refusals != before) return before;
  return {};
}

/// Reclaims the memory that a peer keeps in use, from the session that has been late for longest. If that is
/// not enough, the next check reclaims the memory of another session. The calls of a session never reclaim
/// memory from the session itself.
Session* MemoryShortage::reclaim() {
  const std::optional<std::uint64_t> since = refused_since();
  if (!since) {
    short_since_ns_ = 0;
    return nullptr;
  }
  if (short_since_ns_ == 0) short_since_ns_ = shared_.awake_ns;
  if (shared_.awake_ns - short_since_ns_ < kReclaimWaitNs) return nullptr;
  Session* latest = nullptr;
  std::uint64_t longest_ns = kReclaimNs - 1;
  for (const SessionSet* set : {&shared_.sets.holding, &shared_.sets.timed}) {
    for (const std::uint32_t number : set->numbers()) {
      Session* session = sessions_.find(number);
      const std::uint64_t late_ns = session == nullptr ? 0 : session->late_ns();
      if (late_ns <= longest_ns || !shared_.arena.refused_others(session->owner(), *since)) continue;
      longest_ns = late_ns;
      latest = session;
    }
  }
  if (latest != nullptr) latest->reclaim_memory();
  return latest;
}

}  // namespace rdma_rpc::session

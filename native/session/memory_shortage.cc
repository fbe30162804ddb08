// See memory_shortage.h.
#include "session/memory_shortage.h"

#include <utility>

namespace rdma_rpc::session {

namespace ctl = boundary::ctl;
using boundary::Event;
using boundary::EvKind;

void MemoryShortage::tell_free() {
  const std::uint64_t changes = shared_.arena.counters().releases + shared_.mr_cache.finished();
  if (std::exchange(changes_, changes) == changes) return;
  shared_.arrays.control[ctl::want_memory] = 0;
  told_refusals_ = shared_.arena.counters().refused_for_peers;
  shared_.events.emit(Event::of(EvKind::memory_free));
}

void MemoryShortage::tell_short() {
  if (std::exchange(told_short_, true)) return;
  shared_.events.emit(Event::of(EvKind::memory_short));
}

/// When calls wait for memory that is kept for peers: the arena's refusals of it before those of these calls.
std::optional<std::uint64_t> MemoryShortage::refused_since() {
  const std::uint64_t refusals = shared_.arena.counters().refused_for_peers;
  const std::uint64_t before = std::exchange(checked_refusals_, refusals);
  // Calls that wait in JS have been tried when memory came free, those that wait here in each turn.
  if (shared_.arrays.control[ctl::want_memory] != 0 && refusals != told_refusals_) return told_refusals_;
  if (shared_.memory_waiters.size() != 0 && refusals != before) return before;
  return {};
}

/// One session loses what its peer keeps in use, the one that has been late for longest, and if that is not
/// enough another one at the next look. No session loses anything for calls of its own.
Session* MemoryShortage::give_up() {
  const std::optional<std::uint64_t> since = refused_since();
  if (!since) {
    short_since_ns_ = 0;
    return nullptr;
  }
  if (short_since_ns_ == 0) short_since_ns_ = shared_.awake_ns;
  if (shared_.awake_ns - short_since_ns_ < kGiveUpWaitNs) return nullptr;
  Session* latest = nullptr;
  std::uint64_t longest_ns = kGiveUpNs - 1;
  for (const SessionSet* set : {&shared_.sets.holding, &shared_.sets.timed}) {
    for (const std::uint32_t number : set->numbers()) {
      Session* session = sessions_.find(number);
      const std::uint64_t late_ns = session == nullptr ? 0 : session->late_ns();
      if (late_ns <= longest_ns || !shared_.arena.refused_others(session->owner(), *since)) continue;
      longest_ns = late_ns;
      latest = session;
    }
  }
  if (latest != nullptr) latest->give_memory_up();
  return latest;
}

}  // namespace rdma_rpc::session

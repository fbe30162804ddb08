// Calls that wait for arena memory: who gets what comes free, and when JS is told. See context.h.
#include <algorithm>
#include <utility>

#include "session/context.h"

namespace rdma_rpc::session {

namespace ctl = boundary::ctl;
using boundary::Event;
namespace ev = boundary::ev;
using boundary::EvKind;

void Context::retry_memory() {
  auto& waiters = shared_->memory_waiters;
  const std::uint64_t checked_ns = std::exchange(checked_ns_, shared_->now_ns);
  shared_->waited_ns += std::min(shared_->now_ns - checked_ns, kMemoryCheckNs);
  passed_over_.clear();
  const auto passed_over = [&](std::uint32_t session) {
    return std::find(passed_over_.begin(), passed_over_.end(), session) != passed_over_.end();
  };
  for (std::size_t i = 0; i < waiters.size();) {
    const Shared::Waiter waiter = waiters.at(i);
    if (passed_over(waiter.session)) {
      ++i;
      continue;
    }
    Session* session = find(waiter.session);
    const bool still = session != nullptr && !session->retry_memory(waiter);
    const std::uint64_t waited_ns = shared_->waited_ns - waiter.since_ns;
    if (still && waited_ns >= kMemoryShortNs) tell_memory_short();
    if (still && waited_ns < kMemoryWaitNs) {
      // In order: a large request at the front is not starved by small ones behind it. But what one session
      // alone lacks holds up no other.
      if (session->lacks_arena(waiter)) return;
      passed_over_.push_back(waiter.session);
      ++i;
      continue;
    }
    // A session that has broken meanwhile has taken its calls out of the queue itself.
    const bool there =
        i < waiters.size() && waiters.at(i).session == waiter.session && waiters.at(i).call == waiter.call;
    if (there) waiters.erase(i);
    if (still) session->refuse_memory(waiter);
  }
}

void Context::tell_memory_free() {
  const std::uint64_t changes = arena_->counters().releases + mr_cache_->finished();
  if (std::exchange(memory_changes_, changes) == changes) return;
  control_[ctl::want_memory] = 0;
  told_refusals_ = arena_->counters().refused_for_peers;
  events_->emit(Event::of(EvKind::memory_free));
}

/// When calls wait for memory that is kept for peers: the arena's refusals of it before those of these calls.
std::optional<std::uint64_t> Context::refused_since() {
  const std::uint64_t refusals = arena_->counters().refused_for_peers;
  const std::uint64_t before = std::exchange(checked_refusals_, refusals);
  // Calls that wait in JS have been tried when memory came free, those that wait here in each turn.
  if (control_[ctl::want_memory] != 0 && refusals != told_refusals_) return told_refusals_;
  if (memory_waiters() != 0 && refusals != before) return before;
  return {};
}

/// A peer that is stopped, or too slow, keeps others from memory only for some seconds. One session loses
/// what its peer keeps in use, the one that has been late for longest, and if that is not enough another one
/// at the next look. Nobody loses anything for calls of its own.
void Context::give_memory_up() {
  const std::optional<std::uint64_t> since = refused_since();
  if (!since) {
    short_since_ns_ = 0;
    return;
  }
  if (short_since_ns_ == 0) short_since_ns_ = shared_->awake_ns;
  if (shared_->awake_ns - short_since_ns_ < kGiveUpWaitNs) return;
  Session* latest = nullptr;
  std::uint64_t longest_ns = kGiveUpNs - 1;
  for (const SessionSet* set : {&shared_->sets.holding, &shared_->sets.timed}) {
    for (const std::uint32_t number : set->numbers()) {
      Session* session = find(number);
      const std::uint64_t late_ns = session == nullptr ? 0 : session->late_ns();
      if (late_ns <= longest_ns || !arena_->refused_others(session->owner(), *since)) continue;
      longest_ns = late_ns;
      latest = session;
    }
  }
  if (latest == nullptr) return;
  latest->give_memory_up();
  keep(*latest);
}

void Context::tell_memory_short() {
  if (std::exchange(told_short_, true)) return;
  events_->emit(Event::of(EvKind::memory_short));
}

}  // namespace rdma_rpc::session

// See memory_waiters.h.
#include "session/memory_waiters.h"

#include <algorithm>
#include <utility>

#include "session/session_table.h"

namespace rdma_rpc::session {

bool MemoryWaiters::passed_over(std::uint32_t session) const {
  return std::find(passed_over_.begin(), passed_over_.end(), session) != passed_over_.end();
}

bool MemoryWaiters::retry(SessionTable& sessions, std::uint64_t now_ns) {
  const std::uint64_t checked_ns = std::exchange(checked_ns_, now_ns);
  waited_ns_ += std::min(now_ns - checked_ns, kMemoryCheckNs);
  passed_over_.clear();
  bool is_short = false;
  for (std::size_t i = 0; i < queue_.size();) {
    const Waiter waiter = queue_.at(i);
    if (passed_over(waiter.session)) {
      ++i;
      continue;
    }
    Session* session = sessions.find(waiter.session);
    const bool still = session != nullptr && !session->retry_memory(waiter.call);
    const std::uint64_t waited_ns = waited_ns_ - waiter.since_ns;
    if (still && waited_ns >= kMemoryShortNs) is_short = true;
    if (still && waited_ns < kMemoryWaitNs) {
      // Calls are served in order, so that small requests do not starve a large one at the front. A call that
      // lacks only a resource of its own session is passed over, so that it does not block other sessions.
      if (session->lacks_arena(waiter.call)) return is_short;
      passed_over_.push_back(waiter.session);
      ++i;
      continue;
    }
    // A session that fails removes its calls from the queue itself.
    const bool there =
        i < queue_.size() && queue_.at(i).session == waiter.session && queue_.at(i).call == waiter.call;
    if (there) queue_.erase(i);
    if (still) session->refuse_memory(waiter.call);
  }
  return is_short;
}

}  // namespace rdma_rpc::session

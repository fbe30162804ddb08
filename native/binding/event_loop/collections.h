// When V8 is made to collect: for calls that wait for arena memory which only uncollected buffers may hold,
// and for streams that were dropped without a word (runtime/adapters/connect/abandoned.ts). Each such
// collection is a full one and stops the thread, for longer the larger the heap is, and whoever makes calls wait brings it
// about. So all of a thread together, of every context and every reason, get one fixed share of its time.
// Asked by the pumps and, through the addon, by JS; on the JS thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rdma_rpc::binding {

/// What a thread has left for collections. A worker has a heap and a budget of its own: its collections stop
/// nobody else.
class CollectionBudget {
 public:
  /// Percent of the time: as much as a busy heap costs anyway.
  static constexpr std::uint64_t kPercent = 10;
  /// Between two: that of the last comes a little later.
  static constexpr std::uint64_t kPauseMinNs = 5'000'000;

  static CollectionBudget& of_thread() {
    thread_local CollectionBudget budget;
    return budget;
  }
  /// None before this time.
  std::uint64_t next_ns() const { return next_ns_; }
  /// One has taken place, between these times.
  void spend(std::uint64_t began_ns, std::uint64_t ended_ns) {
    const std::uint64_t cost_ns = std::max(ended_ns, began_ns) - began_ns;
    next_ns_ = std::max(next_ns_, ended_ns) + std::max(kPauseMinNs, cost_ns * (100 - kPercent) / kPercent);
  }

 private:
  std::uint64_t next_ns_ = 0;
};

/// Those of one pump.
class Collections {
 public:
  explicit Collections(CollectionBudget& budget) : budget_(&budget) {}

  /// `waits`: calls wait for memory now. Not at once, since memory may come back by itself.
  bool due(bool waits, std::uint64_t now_ns) {
    if (waits && !std::exchange(waits_, true)) next_ns_ = now_ns + CollectionBudget::kPauseMinNs;
    waits_ = waits;
    return waits && now_ns >= std::max(next_ns_, budget_->next_ns());
  }
  /// One was due: `collected` says whether it took place, between these times, or would have found nothing.
  void done(bool collected, std::uint64_t began_ns, std::uint64_t ended_ns) {
    next_ns_ = ended_ns + CollectionBudget::kPauseMinNs;
    if (collected) budget_->spend(began_ns, ended_ns);
  }

 private:
  CollectionBudget* budget_;
  bool waits_ = false;
  std::uint64_t next_ns_ = 0;
};

}  // namespace rdma_rpc::binding

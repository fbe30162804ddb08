// Decides when V8 is made to collect. Collections are needed for two reasons. Calls may wait for arena memory
// that only uncollected buffers hold, and streams may have been dropped without being ended
// (runtime/adapters/connect/abandoned.ts). Each such collection is a full one. The larger the heap is, the
// longer the collection stops the thread. A peer can cause collections by making calls wait. Therefore all
// collections of a thread, for all contexts and for both reasons together, get one fixed share of the
// thread's time. This code is called by the pumps and, through the addon, by JS, on the JS thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rdma_rpc::binding {

/// The time that a thread may still spend on collections. Each worker has a heap and a budget of its own,
/// because its collections stop no other thread.
class CollectionBudget {
 public:
  /// Limit of the collections' share of the thread's time, in percent. Collections of a busy heap take as
  /// much anyway.
  static constexpr std::uint64_t kPercent = 10;
  /// Least pause between two collections, because the memory that a collection frees is returned a little
  /// later.
  static constexpr std::uint64_t kPauseMinNs = 5'000'000;

  static CollectionBudget& of_thread() {
    thread_local CollectionBudget budget;
    return budget;
  }
  /// Returns the earliest time of the next collection.
  std::uint64_t next_ns() const { return next_ns_; }
  /// Records a collection that took place between these two times.
  void spend(std::uint64_t began_ns, std::uint64_t ended_ns) {
    const std::uint64_t cost_ns = std::max(ended_ns, began_ns) - began_ns;
    next_ns_ = std::max(next_ns_, ended_ns) + std::max(kPauseMinNs, cost_ns * (100 - kPercent) / kPercent);
  }

 private:
  std::uint64_t next_ns_ = 0;
};

/// The collections of one pump.
class Collections {
 public:
  explicit Collections(CollectionBudget& budget) : budget_(&budget) {}

  /// Returns true when a collection is due; `waits` says whether calls wait for memory now. A collection is
  /// not due as soon as a call waits, because memory may be returned without it.
  bool due(bool waits, std::uint64_t now_ns) {
    if (waits && !std::exchange(waits_, true)) next_ns_ = now_ns + CollectionBudget::kPauseMinNs;
    waits_ = waits;
    return waits && now_ns >= std::max(next_ns_, budget_->next_ns());
  }
  /// Records the result of a collection that was due. `collected` is true when the collection took place
  /// between these two times, and false when it was skipped because it would have found nothing.
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

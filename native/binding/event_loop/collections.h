// When V8 is made to collect because calls wait for arena memory that only uncollected buffers may hold. Each
// such collection is a full one and stops the thread, for longer the larger the heap is, and whoever makes
// calls wait brings it about. So all of them together get a fixed share of the thread's time. Asked by the
// pump, on the JS thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rdma_rpc::binding {

class Collections {
 public:
  /// Percent of the time: as much as a busy heap costs anyway.
  static constexpr std::uint64_t kPercent = 10;
  /// Before the first, since memory may come back by itself, and between two: that of the last comes a little
  /// later.
  static constexpr std::uint64_t kPauseMinNs = 5'000'000;

  /// `waits`: calls wait for memory now.
  bool due(bool waits, std::uint64_t now_ns) {
    if (waits && !std::exchange(waits_, true)) next_ns_ = std::max(next_ns_, now_ns + kPauseMinNs);
    waits_ = waits;
    return waits && now_ns >= next_ns_;
  }
  /// One has taken place, between these times.
  void done(std::uint64_t began_ns, std::uint64_t ended_ns) {
    const std::uint64_t cost_ns = std::max(ended_ns, began_ns) - began_ns;
    next_ns_ = ended_ns + std::max(kPauseMinNs, cost_ns * (100 - kPercent) / kPercent);
  }

 private:
  bool waits_ = false;
  std::uint64_t next_ns_ = 0;
};

}  // namespace rdma_rpc::binding

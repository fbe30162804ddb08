// Reads the processor's own counter, as perftest uses it. Reading it takes a tenth of the time of reading the
// system's clock, and it is read once or twice per message. The length of a tick is computed by reading both
// clocks at both ends of the measurement.
#pragma once

#include <cstdint>

#include "perf/clock.h"

namespace rdma_rpc::perf {

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return now_ns();
#endif
}

/// Measures the time from its construction to `each()`.
class TickScale {
 public:
  /// Returns the nanoseconds per tick, or 0 when the counter has not moved.
  double each() const {
    const std::uint64_t counted = ticks() - ticks_;
    return counted == 0 ? 0 : static_cast<double>(now_ns() - ns_) / static_cast<double>(counted);
  }
  std::uint64_t begun_ns() const { return ns_; }

 private:
  std::uint64_t ns_ = now_ns(), ticks_ = ticks();
};

}  // namespace rdma_rpc::perf

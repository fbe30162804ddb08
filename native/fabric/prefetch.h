// Prefetches cache lines. A call on one of a thousand sessions finds none of the session's memory in the
// cache, and waits for one cache line after another. When the lines of a batch of calls are requested in
// advance, they arrive at the same time. Lines of messages that another process has written also arrive
// together.
#pragma once

#include <cstddef>

namespace rdma_rpc::fabric {

inline constexpr std::size_t kPrefetchedLine = 64;

/// Prefetches the cache lines of these bytes. Any address is allowed, because nothing is read.
inline void prefetch(const void* at, std::size_t bytes = 1) {
  const char* const from = static_cast<const char*>(at);
  for (std::size_t done = 0; done < bytes; done += kPrefetchedLine) __builtin_prefetch(from + done, 1);
  __builtin_prefetch(from + bytes - 1, 1);
}

/// Prefetches lines that another CPU has and that this CPU will write: requests them in exclusive state. For
/// generic x86-64, a compiler turns prefetch() into a read prefetch. PREFETCHW is a hint (Intel SDM, volume
/// 2), and a NOP on 64-bit CPUs that lack it.
inline void prefetch_to_write(const void* at, std::size_t bytes) {
#if defined(__x86_64__)
  const char* const from = static_cast<const char*>(at);
  for (std::size_t done = 0; done < bytes; done += kPrefetchedLine)
    asm volatile("prefetchw %0" : : "m"(from[done]));
  asm volatile("prefetchw %0" : : "m"(from[bytes - 1]));
#else
  prefetch(at, bytes);
#endif
}

}  // namespace rdma_rpc::fabric

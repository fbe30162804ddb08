// Fetching into the cache what will be needed in a moment. A call on one of a thousand sessions finds nothing
// of it in the cache, and pays for one line after the other; asked for in advance, for a batch of calls, they
// all come at the same time. So do the lines of messages that another process has written.
#pragma once

#include <cstddef>

namespace rdma_rpc::fabric {

inline constexpr std::size_t kPrefetchedLine = 64;

/// Of the object at `at` the lines of these bytes. Any address will do: nothing is read.
inline void prefetch(const void* at, std::size_t bytes = 1) {
  const char* const from = static_cast<const char*>(at);
  for (std::size_t done = 0; done < bytes; done += kPrefetchedLine) __builtin_prefetch(from + done, 1);
  __builtin_prefetch(from + bytes - 1, 1);
}

/// The same for lines that another CPU had and this one will write: it gets them for its own. A compiler for
/// any x86-64 makes a mere read of the above; PREFETCHW is a hint (Intel SDM, volume 2), and a NOP where a
/// 64-bit CPU does not have it.
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

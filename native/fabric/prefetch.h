// Fetching into the cache what will be needed in a moment. A call on one of a thousand sessions finds nothing
// of it in the cache, and pays for one line after the other; asked for in advance, for a batch of calls, they
// all come at the same time.
#pragma once

#include <cstddef>

namespace rdma_rpc::fabric {

/// Of the object at `at` the lines of these bytes. Any address will do: nothing is read.
inline void prefetch(const void* at, std::size_t bytes = 1) {
  constexpr std::size_t kLine = 64;
  const char* const from = static_cast<const char*>(at);
  for (std::size_t done = 0; done < bytes; done += kLine) __builtin_prefetch(from + done, 1);
  __builtin_prefetch(from + bytes - 1, 1);
}

}  // namespace rdma_rpc::fabric

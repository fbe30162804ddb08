// Sets how much freed memory malloc keeps for this process. Called by JS when it first copies values of some
// KiB; on any thread.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace rdma_rpc::binding {

/// glibc moves its thresholds for blocks of less than 32 MiB (mallopt(3), M_MMAP_THRESHOLD).
inline constexpr std::size_t kKeptBlockBytes = std::size_t{24} << 20;

/// V8 frees the memory of many small values at a time. By default glibc returns free memory above 128 KiB at
/// the end of its heap to the system, so the next values need the same pages again. After a program has freed
/// a large block, glibc keeps twice its size (mallopt(3), "dynamic mmap threshold"). So this function
/// allocates and frees one without touching it. A threshold that the user has set is not changed.
inline void keep_freed_memory() {
  void* volatile block = std::malloc(kKeptBlockBytes);
  std::free(block);
}

}  // namespace rdma_rpc::binding

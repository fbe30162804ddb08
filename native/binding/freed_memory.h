// Sets how much freed memory malloc keeps for this process. This code is called by JS before it first copies
// values of some KiB, on any thread.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace rdma_rpc::binding {

/// Size of the block that is freed here. glibc adjusts its thresholds only for blocks of less than 32 MiB
/// (mallopt(3), M_MMAP_THRESHOLD).
inline constexpr std::size_t kKeptBlockBytes = std::size_t{24} << 20;

/// V8 frees the memory of many small values at a time. By default glibc returns free memory above 128 KiB at
/// the end of its heap to the system, and the next values then need new pages. After a program has freed a
/// large block, glibc keeps up to twice the size of that block as free memory (mallopt(3), "dynamic mmap
/// threshold"). This function therefore allocates a large block and frees it without touching it. The
/// function does not change a threshold that the user has set.
inline void keep_freed_memory() {
  void* volatile block = std::malloc(kKeptBlockBytes);
  std::free(block);
}

}  // namespace rdma_rpc::binding

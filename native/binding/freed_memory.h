// How much freed memory malloc keeps for this process. Called by JS when it first copies values of some KiB;
// any thread.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace rdma_rpc::binding {

/// glibc moves its thresholds for blocks of less than 32 MiB (mallopt(3), M_MMAP_THRESHOLD).
inline constexpr std::size_t kKeptBlockBytes = std::size_t{24} << 20;

/// V8 frees the memory of small values many at a time, and glibc gives what is free at the end of its heap
/// back to the system above 128 KiB: the next values wait for the same pages again. From the first large
/// block that a program frees it keeps twice the size of that (mallopt(3), "dynamic mmap threshold"). So one
/// is made and freed here, never touched: the program gets what it would have after any buffer of that size,
/// at once. A threshold that its user has set stays as it is.
inline void keep_freed_memory() {
  void* volatile block = std::malloc(kKeptBlockBytes);
  std::free(block);
}

}  // namespace rdma_rpc::binding

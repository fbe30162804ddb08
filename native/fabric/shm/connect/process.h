// A process, told apart from a later one with the same pid by its start time. Used by connect() and by
// revocations that wait for a peer; on the device's thread.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric::shm {

struct ProcessIdentity {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< clock ticks after boot, from /proc/<pid>/task/<pid>/stat
};

ProcessIdentity this_process();

/// False when it has ended (a zombie has ended), or its pid is another process's, or is not visible here.
/// When that cannot be seen now, for want of descriptors, it is taken to run, and `unknown` is the errno,
/// else 0.
bool is_running(const ProcessIdentity& process, int* unknown = nullptr);

}  // namespace rdma_rpc::fabric::shm

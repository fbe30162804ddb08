// Identifies a process by its pid and start time, so that a later process with the same pid is recognized as
// another one. This file is used by connect() and by revocations that wait for a peer, on the device's
// thread.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric::shm {

struct ProcessIdentity {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< clock ticks after boot, from /proc/<pid>/task/<pid>/stat
};

ProcessIdentity this_process();

/// Returns false when the process has ended (a zombie has ended), when its pid belongs to another process, or
/// when it is not visible here. If this process has no free descriptors to find that out, the function
/// returns true and sets `unknown` to the errno. Otherwise it sets `unknown` to 0.
bool is_running(const ProcessIdentity& process, int* unknown = nullptr);

}  // namespace rdma_rpc::fabric::shm

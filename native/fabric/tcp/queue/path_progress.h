// Tells how far the bytes of a connection have come. A client uses the answer before it ends a connection on
// which nothing has come for a minute. This code runs on the device's thread.
//
// Linux also counts these bytes itself, in the tcp_info of TCP_INFO. But several systems answer that call with
// success and without the counters: qemu's user mode passes on four bytes, gVisor returns zeros, and Linux has
// them only since version 4.1. A client would take counters that stay 0 for a connection that has stopped.
// Therefore the queue pair counts the bytes, and the kernel is asked only for the lengths of its two queues,
// which all of these systems know.
#pragma once

#include <cstdint>
#include <optional>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::tcp {

/// Bytes of frames that a queue pair has given to its socket and has taken from it.
struct StreamBytes {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// Asks the kernel how many of these bytes are still under way. Returns nothing when the system does not
/// answer.
std::optional<PathProgress> path_progress(int fd, const StreamBytes& own);

}  // namespace rdma_rpc::fabric::tcp

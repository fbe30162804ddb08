// Asks the kernel how far the bytes of a connection have come. A client uses the answer before it ends a
// connection on which nothing has come for a minute. This code runs on the device's thread.
#pragma once

#include <optional>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::tcp {

/// Returns nothing when the system does not answer.
std::optional<PathProgress> kernel_path_progress(int fd);

}  // namespace rdma_rpc::fabric::tcp

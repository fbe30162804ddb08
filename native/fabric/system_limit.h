// Explains a refusal by the system: the cause, the limit behind it and what to do. This code is called when a
// system call of a fabric has failed, on the device's thread.
#pragma once

#include <string>

namespace rdma_rpc::fabric {

/// Returns the text for an errno, such as "Too many open files; this process may have 1024 (raise it with
/// ulimit -n)".
std::string system_refusal(int error);

}  // namespace rdma_rpc::fabric

// Explains why the kernel or a driver has refused something: the cause, the limit behind it and what to do.
// Called where a call of libibverbs has failed, on the device's thread.
#pragma once

#include <cstddef>
#include <string>

namespace rdma_rpc::fabric::verbs {

/// Returns why a registration failed with this errno.
std::string why_not_registered(int error, std::size_t length, const std::string& device);
/// RLIMIT_MEMLOCK as text: "unlimited" or "65536 bytes".
std::string memlock_limit();
/// Explains a driver's errno: the cause, the limit behind it and what to do. 0 means that the driver reports
/// no reason.
std::string why_refused(int error);

}  // namespace rdma_rpc::fabric::verbs

// Explains why the kernel or a driver has refused an object: the cause, the limit behind it and the remedy.
// This file is used when a call of libibverbs has failed, on the device's thread.
#pragma once

#include <cstddef>
#include <string>

namespace rdma_rpc::fabric::verbs {

/// Returns why a registration failed with this errno.
std::string why_not_registered(int error, std::size_t length, const std::string& device);
/// Returns RLIMIT_MEMLOCK as text, such as "unlimited" or "65536 bytes".
std::string memlock_limit();
/// Returns a text that explains a driver's errno. When the errno is 0, the text says that the driver gives no
/// reason.
std::string why_refused(int error);

}  // namespace rdma_rpc::fabric::verbs

// The limits that the rdma controller of a control group sets for the objects of RDMA devices. Called when the
// kernel has refused an object, on the device's thread.
#pragma once

#include <string>

namespace rdma_rpc::fabric::verbs {

/// Returns what to add to an error text: the nearest limit for this process, what is in use, and the file.
/// When no limit is found, says which one to look at. `root` is "" except in tests.
std::string rdma_controller_limit(const std::string& root = "");

}  // namespace rdma_rpc::fabric::verbs

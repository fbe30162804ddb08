// Reads the limits that the rdma controller of a control group sets for the objects of RDMA devices. This
// code is called when the kernel has refused an object, on the device's thread.
#pragma once

#include <string>

namespace rdma_rpc::fabric::verbs {

/// Returns a text to add to an error: the nearest limit for this process, its current use, and the file of
/// the limit. When no limit is found, the text names the file to look at. `root` is "" except in tests.
std::string rdma_controller_limit(const std::string& root = "");

}  // namespace rdma_rpc::fabric::verbs

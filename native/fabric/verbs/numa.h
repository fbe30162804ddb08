// Finds the NUMA node of a device, and memory near the device. This code is called when a device is opened
// and when it gets memory, on the device's thread. This code uses the kernel's interface alone, without
// libnuma.
#pragma once

#include <cstddef>
#include <string>

namespace rdma_rpc::fabric::verbs {

/// Returns the node of a device, or -1 when the node is unknown or this machine has only one node. `root` is
/// "" except in tests.
int node_of_device(const std::string& device, const std::string& root = "");

/// Asks the kernel to take the pages of this mapping, which must not have been touched yet, from node `node`
/// while the node has free pages. Returns the errno, which callers may ignore; does nothing for node -1.
int prefer_node(void* data, std::size_t bytes, int node);

}  // namespace rdma_rpc::fabric::verbs

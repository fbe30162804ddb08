// Returns all attributes of a port, as ibv_devinfo -v shows them. This code is called by details.cc.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "fabric/verbs_inspection.h"

namespace rdma_rpc::fabric::verbs {

/// Returns the number in the form 0x1f.
std::string hex(std::uint64_t value);

/// Describes port `number`. Leaves out the attributes when they cannot be queried.
VerbsPortDetails describe_port(ibv_context* device, std::uint8_t number);

}  // namespace rdma_rpc::fabric::verbs

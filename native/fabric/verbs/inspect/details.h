// Returns all attributes of the devices of this machine, as ibv_devinfo -v shows them. This code is called by
// the plug-in's entry point, on the JS thread of a command.
#pragma once

#include <vector>

#include "fabric/verbs_inspection.h"

namespace rdma_rpc::fabric::verbs {

/// Opens each device and closes it again.
std::vector<VerbsDetails> describe_devices();

}  // namespace rdma_rpc::fabric::verbs

// Receives the asynchronous events of a device for `rdma-rpc events`, on a context of its own that has no
// queue pairs. Every context gets the events of the device and of its ports. The event of an object goes only
// to the process that owns the object. This code is called on the JS thread of the command.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs_inspection.h"

namespace rdma_rpc::fabric::verbs {

/// Returns null, with the reason in `error`, when there is no such device or it cannot be opened.
std::unique_ptr<VerbsWatch> watch_device(const std::string& device, std::string* error);

}  // namespace rdma_rpc::fabric::verbs

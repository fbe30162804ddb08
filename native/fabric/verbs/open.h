// Which device is opened, and what there is to choose from. Called by plugin.cc, on the thread that will use
// the device.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs/device.h"

namespace rdma_rpc::fabric::verbs {

/// The device that the options name, else the one with the address that they name, else the first usable
/// one. Null, and why.
std::unique_ptr<Device> open_device(const VerbsOptions& options, std::string* error);

/// Every device, whether it can be used or not.
VerbsReport list_devices(std::size_t needed_bytes);

}  // namespace rdma_rpc::fabric::verbs

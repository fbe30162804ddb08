// Chooses the device to open, and lists the choices. Called by plugin.cc, on the thread that will use the
// device.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs/device.h"

namespace rdma_rpc::fabric::verbs {

/// Opens the device that the options name, else the one with the address that they name, else the first
/// usable one. Returns null, with the reason in `error`, when it cannot.
std::unique_ptr<Device> open_device(const VerbsOptions& options, std::string* error);

/// Lists every device, usable or not.
VerbsReport list_devices(const VerbsSearch& search);

}  // namespace rdma_rpc::fabric::verbs

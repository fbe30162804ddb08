// Chooses the device to open, and lists the choices. This code is called by plugin.cc, on the thread that
// will use the device.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs/device.h"

namespace rdma_rpc::fabric::verbs {

/// Opens the device that the options name. Without such a name it opens the device with the address that they
/// name, or else the first usable device. Returns null, with the reason in `error`, when no device can be
/// opened.
std::unique_ptr<Device> open_device(const VerbsOptions& options, std::string* error);

/// Lists every device, usable or not.
VerbsReport list_devices(const VerbsSearch& search);

}  // namespace rdma_rpc::fabric::verbs

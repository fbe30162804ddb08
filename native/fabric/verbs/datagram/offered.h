// Finds out which types of queue pairs besides RC a device has (UC, UD, and UD with multicast), by making one
// of each. This code is called when a device is opened, on the thread of that device.
#pragma once

#include "fabric/fabric.h"
#include "fabric/verbs/objects.h"
#include "fabric/verbs/port.h"

namespace rdma_rpc::fabric::verbs {

ibv_qp_type type_on_device(QpType type);

/// Sets the capabilities for UC and UD, and the reasons why some are missing. iWARP devices lack all of them.
void offer_unreliable(ibv_pd* pd, const Port& port, const ibv_device_attr& attributes, Capabilities* can);

}  // namespace rdma_rpc::fabric::verbs

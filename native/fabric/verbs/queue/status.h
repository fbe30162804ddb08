// Translates the device's completion statuses to those of fabric.h. This code is called for each completion,
// on the device's thread.
#pragma once

#include "fabric/fabric.h"
#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

WcStatus status_of(ibv_wc_status status, bool receive, Opcode opcode);

}  // namespace rdma_rpc::fabric::verbs

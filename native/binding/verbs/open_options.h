// Reads the options with which JS opens a device of the verbs API. This code runs on the JS thread.
#pragma once

#include <napi.h>

#include "binding/verbs/open_fabric.h"

namespace rdma_rpc::binding {

/// runtime/verbs has checked the types and ranges of `given`.
OpenOptions read_open_options(const Napi::Object& given);

}  // namespace rdma_rpc::binding

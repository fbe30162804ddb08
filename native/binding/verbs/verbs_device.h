// Implements the object that runtime/native/verbs-device.ts declares: a device of `rdma-rpc/verbs`. The
// object only reads arguments and passes them on. This code runs on the JS thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// Defines openVerbsDevice() and verbsRecords() on the module's exports.
void define_verbs_devices(Napi::Env env, Napi::Object exports);

}  // namespace rdma_rpc::binding

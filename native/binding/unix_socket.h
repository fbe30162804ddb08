// Protects unix sockets of JS from descriptors sent by their peers (fabric/rights.h). This code is called on
// the JS thread when sockets are opened, never for single calls.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// Defines refusesRights, guardListener, relayBytes and dialUnix, see runtime/native/native.ts.
void define_unix_sockets(Napi::Env env, Napi::Object exports);

}  // namespace rdma_rpc::binding

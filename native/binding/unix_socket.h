// Protects unix sockets of JS from descriptors sent by their peers (fabric/rights.h). Called on the JS
// thread, never for single calls.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// refusesRights, guardListener, relayBytes, dialUnix: see runtime/native/native.ts.
void define_unix_sockets(Napi::Env env, Napi::Object exports);

}  // namespace rdma_rpc::binding

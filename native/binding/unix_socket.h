// Unix sockets of JS whose peers can send no descriptors (fabric/rights.h). Called on the JS thread; nothing
// of it is per call.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// refusesRights, guardListener, relayBytes, dialUnix: see runtime/native/native.ts.
void define_unix_sockets(Napi::Env env, Napi::Object exports);

}  // namespace rdma_rpc::binding

// This is the object that runtime/native/native.ts declares as NativeContext. The object only checks
// arguments and passes them on. This code runs on the JS thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// Defines createContext() and boundary() on the module's exports.
void define_module(Napi::Env env, Napi::Object exports);

}  // namespace rdma_rpc::binding

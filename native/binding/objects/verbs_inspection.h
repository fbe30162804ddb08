// Passes the attributes and events of RDMA devices to JS as objects, which runtime/native/verbs-inspection.ts
// describes. This code is called when the addon is loaded; the functions that it defines run on the JS
// thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// Adds NativeModule.verbsDetails() and verbsWatch().
void define_verbs_inspection(Napi::Env env, Napi::Object exports);

}  // namespace rdma_rpc::binding

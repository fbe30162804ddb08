// The attributes and events of RDMA devices as objects of JS, which runtime/native/verbs-report.ts describes.
// Called by NativeModule.verbsDetails() and verbsWatch(), on the JS thread.
#pragma once

#include <napi.h>

#include <string>

namespace rdma_rpc::binding {

Napi::Value verbs_details(Napi::Env env);

/// Throws an error of JS, with the reason, when the device cannot be watched.
Napi::Value verbs_watch(Napi::Env env, const std::string& device);

}  // namespace rdma_rpc::binding

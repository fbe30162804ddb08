// Checks whether the JS runtime supports the operations on external memory that this addon needs. This code
// is called once, when the addon is loaded.
#pragma once

#include <napi.h>

#include <string>

namespace rdma_rpc::binding {

/// Returns the missing part and the remedy, for runtime/native/native.ts to throw. Returns "" when nothing is
/// missing.
std::string why_unusable(Napi::Env env);

}  // namespace rdma_rpc::binding

// Checks what this addon needs from the JS runtime beyond existing functions. Called once, when it is loaded.
#pragma once

#include <napi.h>

#include <string>

namespace rdma_rpc::binding {

/// Returns what is missing and what to do, for runtime/native/native.ts to throw, or "" when all is there.
std::string why_unusable(Napi::Env env);

}  // namespace rdma_rpc::binding

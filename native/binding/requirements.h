// What this addon needs of the JS runtime beyond functions that are there: asked once, when it is loaded.
#pragma once

#include <napi.h>

#include <string>

namespace rdma_rpc::binding {

/// Returns what is missing and what to do, for runtime/native/native.ts to throw, or "" when all is there.
std::string why_unusable(Napi::Env env);

}  // namespace rdma_rpc::binding

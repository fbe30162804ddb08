// Provides the async context in which native code enters JS. The context is the root context, which belongs
// to no caller, so that it has no store of an AsyncLocalStorage. A context of our own (napi_async_init) would
// have three faults: it would keep the stores of the caller for whom it was made, show them to every later
// call, and keep them in memory as long as it exists. The engine uses it for each batch of events, and the
// runtime uses it for its own root scope (runtime/core/scopes.ts). Both run on the JS thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// The value that means "no async context" in Node-API.
inline constexpr napi_async_context kRootContext = nullptr;

/// For JS: calls its argument in the root context instead of the current context, and returns the result.
inline Napi::Value run_in_root(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  napi_value result = nullptr;
  napi_make_callback(env, kRootContext, Napi::Object::New(env), info[0], 0, nullptr, &result);
  return {env, result};
}

}  // namespace rdma_rpc::binding

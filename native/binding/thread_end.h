// Tells a finalizer why it runs: because its value was collected, or because the thread of the environment
// ends. At the end Node runs the finalizers of all external memory, also of memory that another thread has
// received. Called on the JS thread of the environment.
#pragma once

#include <node_api.h>

namespace rdma_rpc::binding {

/// Returns true when JS can no longer run in the environment. Needs a handle scope, and no exception may be
/// pending. Node says it by the status of every function that could run JS ("napi_pending_exception" and
/// "napi_cannot_run_js" in its Node-API documentation); this one asks for a property that nobody defines.
inline bool thread_ends(napi_env env) {
  napi_value global = nullptr;
  bool found = false;
  return napi_get_global(env, &global) != napi_ok || napi_has_element(env, global, 0, &found) != napi_ok;
}

}  // namespace rdma_rpc::binding

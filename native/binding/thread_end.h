// Lets a finalizer distinguish the two reasons for which Node calls it: the garbage collector has collected
// its value, or the thread of the environment is ending. When a thread ends, Node calls the finalizers of all
// external memory that the thread created, even if another thread has received the memory. This code is
// called on the JS thread of the environment.
#pragma once

#include <node_api.h>

namespace rdma_rpc::binding {

/// Returns true when JS can no longer run in the environment. The caller must have a handle scope and no
/// pending exception. In this state every Node-API function that could run JS fails with a status that says
/// so ("napi_pending_exception" and "napi_cannot_run_js" in Node's documentation). This function therefore
/// asks for a property that no code defines.
inline bool thread_ends(napi_env env) {
  napi_value global = nullptr;
  bool found = false;
  return napi_get_global(env, &global) != napi_ok || napi_has_element(env, global, 0, &found) != napi_ok;
}

}  // namespace rdma_rpc::binding

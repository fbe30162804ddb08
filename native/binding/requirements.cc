// See requirements.h.
#include "binding/requirements.h"

#include <cstddef>

namespace rdma_rpc::binding {

std::string why_unusable(Napi::Env env) {
  const Napi::HandleScope scope(env);
  std::byte memory[8] = {};
  napi_value buffer = nullptr;
  if (napi_create_external_arraybuffer(env, memory, sizeof memory, nullptr, nullptr, &buffer) != napi_ok) {
    return "this JS runtime (such as Electron) forbids ArrayBuffers in memory that it has not allocated, but "
           "messages are in registered memory; run the part that uses rdma-rpc as a process of Node, for "
           "example by child_process.spawn('node', ...)";
  }
  if (napi_detach_arraybuffer(env, buffer) != napi_ok) {
    return "this JS runtime cannot detach ArrayBuffers, so freed memory could still be read; run the "
           "part that uses rdma-rpc as a process of Node";
  }
  return {};
}

}  // namespace rdma_rpc::binding

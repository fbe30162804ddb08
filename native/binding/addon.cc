// Entry point of the addon: once per JS thread, no state of its own.
#include <napi.h>

#include "binding/native_context.h"

namespace {

Napi::Object init(Napi::Env env, Napi::Object exports) {
  rdma_rpc::binding::define_module(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(rdma_rpc, init)

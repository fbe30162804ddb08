// Entry point of the addon.
#include <napi.h>
#include <uv.h>

namespace {

Napi::Object init(Napi::Env env, Napi::Object exports) {
  uv_loop_s* loop = nullptr;
  napi_get_uv_event_loop(env, &loop);
  return exports;
}

}  // namespace

NODE_API_MODULE(rdma_rpc, init)

// See event_loop.h.
#include "binding/event_loop/event_loop.h"

#include "binding/event_loop/uv_event_loop.h"
#include "binding/event_loop/wait_thread.h"

namespace rdma_rpc::binding {

std::unique_ptr<EventLoop> open_event_loop(LoopKind kind, napi_env env, int fd, EventLoop::Listener& listener,
                                           std::string* error) {
  if (kind == LoopKind::thread) return WaitThread::open(env, fd, listener, error);
  return UvEventLoop::open(env, fd, listener, error);
}

}  // namespace rdma_rpc::binding

// See uv_event_loop.h.
#include "binding/event_loop/uv_event_loop.h"

#include <utility>

namespace rdma_rpc::binding {
namespace {

EventLoop::Listener& listener_of(void* data) { return *static_cast<EventLoop::Listener*>(data); }

}  // namespace

std::unique_ptr<EventLoop> UvEventLoop::open(napi_env env, int fd, Listener& listener, std::string* error) {
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) {
    *error = "this environment has no event loop";
    return nullptr;
  }
  return std::unique_ptr<EventLoop>(new UvEventLoop(loop, fd, listener));
}

UvEventLoop::UvEventLoop(uv_loop_t* loop, int fd, Listener& listener) : listener_(listener) {
  uv_idle_init(loop, &idle_);
  uv_poll_init(loop, &poll_, fd);
  uv_timer_init(loop, &timer_);
  idle_.data = poll_.data = timer_.data = &listener_;
  uv_poll_start(&poll_, UV_READABLE,
                [](uv_poll_t* handle, int, int) { listener_of(handle->data).readable(); });
  // Only sockets and calls of the application keep a process alive; these handles never do.
  uv_unref(reinterpret_cast<uv_handle_t*>(&idle_));
  uv_unref(reinterpret_cast<uv_handle_t*>(&poll_));
  uv_unref(reinterpret_cast<uv_handle_t*>(&timer_));
}

void UvEventLoop::spin() {
  uv_idle_start(&idle_, [](uv_idle_t* handle) { listener_of(handle->data).turn(); });
}

void UvEventLoop::rest() { uv_idle_stop(&idle_); }

void UvEventLoop::tick_after(std::uint64_t ms) {
  uv_timer_start(
      &timer_, [](uv_timer_t* handle) { listener_of(handle->data).tick(); }, ms, 0);
}

void UvEventLoop::stop() {
  uv_idle_stop(&idle_);
  uv_poll_stop(&poll_);
  uv_timer_stop(&timer_);
}

void UvEventLoop::close(std::function<void()> then) {
  then_ = std::move(then);
  stop();
  idle_.data = poll_.data = timer_.data = this;
  const uv_close_cb done = [](uv_handle_t* handle) { static_cast<UvEventLoop*>(handle->data)->closed(); };
  uv_close(reinterpret_cast<uv_handle_t*>(&idle_), done);
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), done);
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), done);
}

void UvEventLoop::closed() {
  if (--open_handles_ > 0) return;
  const std::function<void()> then = std::move(then_);  // this object may have been destroyed when it returns
  then();
}

}  // namespace rdma_rpc::binding

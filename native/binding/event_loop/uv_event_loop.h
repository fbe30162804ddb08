// Connects the pump to the event loop of Node: an idle handle keeps the loop from blocking, and a poll handle
// watches the completion queue. This is the only file of the addon that calls libuv: in other runtimes its
// functions abort the process or are missing.
#pragma once

#include <uv.h>

#include "binding/event_loop/event_loop.h"

namespace rdma_rpc::binding {

class UvEventLoop final : public EventLoop {
 public:
  static std::unique_ptr<EventLoop> open(napi_env env, int fd, Listener& listener, std::string* error);

  void spin() override;
  void rest() override;
  void tick_after(std::uint64_t ms) override;
  void stop() override;
  void close(std::function<void()> then) override;
  bool promises_wait_for_turn() const override { return false; }

 private:
  UvEventLoop(uv_loop_t* loop, int fd, Listener& listener);
  void closed();

  Listener& listener_;
  uv_idle_t idle_;
  uv_poll_t poll_;
  uv_timer_t timer_;
  int open_handles_ = 3;
  std::function<void()> then_;
};

}  // namespace rdma_rpc::binding

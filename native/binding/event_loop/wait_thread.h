// Implements an event loop for JS runtimes without libuv (Bun, Deno). A thread waits for the descriptor of
// the completion queue and for the timer, and calls the JS thread through a thread-safe function. While the
// pump spins, its turns are called by setImmediate(), and the thread is not needed. This file is used by the
// pump, on the JS thread.
//
// The thread only reports which descriptor was ready, and waits again. Each descriptor is armed for one
// report (EPOLLONESHOT). A completion queue that has not been read yet therefore does not keep the thread
// busy, and rest() arms it with one system call, without waking the thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

#include "binding/event_loop/event_loop.h"

namespace rdma_rpc::binding {

class WaitThread final : public EventLoop {
 public:
  static std::unique_ptr<EventLoop> open(napi_env env, int fd, Listener& listener, std::string* error);
  ~WaitThread() override;

  void spin() override;
  void rest() override;
  void tick_after(std::uint64_t ms) override;
  void stop() override;
  void close(std::function<void()> then) override;
  bool promises_wait_for_turn() const override { return true; }

 private:
  WaitThread(napi_env env, Listener& listener);
  std::string define_callbacks();
  std::string start(int fd);

  void wait();
  bool post();

  void arrived();
  void came_round();
  void go_on();
  void released();

  const napi_env env_;
  Listener& listener_;
  std::function<void()> then_;
  /// A late setImmediate() callback reads this pointer. The pointer is null after this object has been
  /// destroyed.
  std::shared_ptr<WaitThread*> self_;

  int fd_ = -1, epoll_ = -1, timer_ = -1, end_ = -1;
  pthread_t thread_{};
  napi_threadsafe_function function_ = nullptr;
  napi_ref set_immediate_ = nullptr, turn_ = nullptr;
  bool running_ = false;  ///< the thread has been started
  bool spinning_ = false, in_callback_ = false, immediate_ = false, stopped_ = false, released_ = false;

  // The waiting thread sets these flags, and the JS thread clears them.
  std::atomic<bool> readable_ = false, ticked_ = false;
  /// True while a call of `function_` is pending. One pending call is enough.
  std::atomic<bool> posted_ = false;
};

}  // namespace rdma_rpc::binding

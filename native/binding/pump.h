// The pump: turns a context's work inside the event loop of its JS thread. While there is traffic it spins
// (an idle handle keeps the loop from blocking); otherwise it arms the completion queue and sleeps on its
// descriptor. Owned by NativeContext; every callback runs on the JS thread, from libuv.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>

#include "session/context.h"

namespace rdma_rpc::binding {

enum class Polling { adaptive, busy, event };

struct PumpCounters {
  std::uint64_t turns = 0, batches = 0, sleeps = 0;
};

class Pump {
 public:
  /// `deliver(count)` enters JS with the events; false: JS cannot run any more. `on_memory_short` is called
  /// now and then while calls wait for arena memory.
  Pump(uv_loop_t* loop, session::Context& context, Polling polling,
       std::function<bool(std::uint32_t)> deliver, std::function<void()> on_memory_short);
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  /// The time that sessions go by.
  std::uint64_t now_ns() const { return clock_ ? clock_() : uv_hrtime(); }
  /// Another clock instead of the machine's. For a stepped simulation.
  void set_clock(std::function<std::uint64_t()> now_ns) { clock_ = std::move(now_ns); }
  /// There is something to do: the next turn comes with the loop's next iteration.
  void kick();
  /// Closes the handles; `then` runs when libuv has let go of them all. The context may be destroyed at once.
  void close(std::function<void()> then);
  const PumpCounters& counters() const { return counters_; }

 private:
  void turn();
  void sleep();
  void wake();
  bool work(std::uint64_t now_ns);
  bool work_and_spin();
  void tick();
  void stop();
  void closed();

  session::Context* context_;
  const Polling polling_;
  std::function<bool(std::uint32_t)> deliver_;
  std::function<void()> on_memory_short_;
  std::function<std::uint64_t()> clock_;
  std::function<void()> then_;
  uv_idle_t idle_;
  uv_poll_t poll_;
  uv_timer_t timer_;
  int open_handles_ = 3;
  bool spinning_ = false, in_turn_ = false;
  std::uint64_t last_traffic_ns_ = 0;
  PumpCounters counters_;
};

}  // namespace rdma_rpc::binding

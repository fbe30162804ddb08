// The pump runs a context in the event loop of its JS thread. While there is traffic it spins (the loop does
// not block); otherwise it arms the completion queue and sleeps on its descriptor. Engine owns this object;
// every callback runs on the JS thread, from the event loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "binding/event_loop/clock.h"
#include "binding/event_loop/collections.h"
#include "binding/event_loop/event_loop.h"
#include "session/context.h"

namespace rdma_rpc::binding {

enum class Polling { adaptive, busy, event };

struct PumpCounters {
  std::uint64_t turns = 0, batches = 0, sleeps = 0;
  /// The longest time in the last second or two during which the thread was awake but did not poll
  /// completions.
  std::uint64_t lag_max_ns = 0;
};

class Pump final : private EventLoop::Listener {
 public:
  /// `deliver(count, now_ns)` enters JS with this number of events; `now_ns` is about the time at which they
  /// occurred. `deliver` returns false when JS cannot run any more. `collect` is called from time to time
  /// while calls wait for arena memory. `collect` returns false when it had nothing to collect.
  Pump(session::Context& context, Polling polling, std::function<bool(std::uint32_t, std::uint64_t)> deliver,
       std::function<bool()> collect);
  /// Sets a function that publishes the counters. The function is called at most every 100 ms, after some
  /// work was done.
  void on_report(std::function<void()> report) { report_ = std::move(report); }
  /// Sets a function that is called every 500 ms while there is traffic, and twice after the traffic has
  /// ended.
  void on_rest(std::function<void()> rest) { rest_ = std::move(rest); }
  /// Must be called first. Returns false, with the reason in `error`, when the event loop cannot be opened.
  bool open(LoopKind kind, napi_env env, std::string* error);
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  /// Returns the current time on the clock that the sessions use.
  std::uint64_t now_ns() const { return clock_ ? clock_() : monotonic_ns(); }
  /// Replaces the clock of the machine, for a stepped simulation.
  void set_clock(std::function<std::uint64_t()> now_ns) { clock_ = std::move(now_ns); }
  /// Schedules a turn in the loop's next iteration, because work has been added.
  void kick();
  /// Closes the pump. The context may be destroyed after this. `then` runs when the event loop has released
  /// the pump.
  void close(std::function<void()> then);
  const PumpCounters& counters() const { return counters_; }

 private:
  void turn() override;
  void readable() override;
  void tick() override;
  void sleep();
  void run_periodic(std::uint64_t now_ns);
  void trim(std::uint64_t now_ns);
  void report(std::uint64_t now_ns);
  void note_lag(std::uint64_t ns) { lag_ns_ = std::max(lag_ns_, ns); }
  void wake();
  bool work(std::uint64_t now_ns);
  bool work_and_spin();
  void stop();

  session::Context* context_;
  const Polling polling_;
  std::function<bool(std::uint32_t, std::uint64_t)> deliver_;
  std::function<bool()> collect_;
  std::function<void()> report_, rest_;
  Collections collections_{CollectionBudget::of_thread()};
  std::function<std::uint64_t()> clock_;
  std::unique_ptr<EventLoop> loop_;
  bool one_batch_a_turn_ = false;
  bool spinning_ = false, in_turn_ = false;
  std::uint64_t last_traffic_ns_ = 0;
  std::uint64_t checked_ns_ = 0;  ///< time of the last check of idle memory by run_periodic()
  PumpCounters counters_;
  std::uint64_t turn_ended_ns_ = 0;  ///< 0 when the pump has slept since the last turn
  std::uint64_t left_ns_ = 0;        ///< end of the last turn, or time at which the pump was created
  std::uint64_t lag_ns_ = 0, lag_since_ns_ = 0, lag_before_ns_ = 0;
  std::uint64_t reported_ns_ = 0;
  std::uint64_t trimmed_ns_ = 0;
  bool trims_ = false;  ///< the arena has more chunks to return to the system
  bool unreported_ = true;
  std::uint64_t rest_ns_ = 0;
  int rests_left_ = 0;  ///< number of remaining calls of rest_ without traffic
};

}  // namespace rdma_rpc::binding

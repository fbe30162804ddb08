// The pump: turns a context's work inside the event loop of its JS thread. While there is traffic it spins
// (the loop does not block); otherwise it arms the completion queue and sleeps on its descriptor. Owned by
// Engine; every callback runs on the JS thread, from the event loop.
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
  /// In the last second or two: how long, at most, the thread was awake and did not look for completions.
  std::uint64_t lag_max_ns = 0;
};

class Pump final : private EventLoop::Listener {
 public:
  /// `deliver(count, now_ns)` enters JS with the events of about that time; false: JS cannot run any more.
  /// `collect` is called now and then while calls wait for arena memory; false: there was nothing to collect.
  Pump(session::Context& context, Polling polling, std::function<bool(std::uint32_t, std::uint64_t)> deliver,
       std::function<bool()> collect);
  /// Called every now and then after there was something to do: others may want to know how things are.
  void on_report(std::function<void()> report) { report_ = std::move(report); }
  /// Called every half a second from some traffic on, and twice after it.
  void on_rest(std::function<void()> rest) { rest_ = std::move(rest); }
  /// First of all. False, with the reason in `error`: there is no such event loop.
  bool open(LoopKind kind, napi_env env, std::string* error);
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  /// The time that sessions go by.
  std::uint64_t now_ns() const { return clock_ ? clock_() : monotonic_ns(); }
  /// Another clock instead of the machine's. For a stepped simulation.
  void set_clock(std::function<std::uint64_t()> now_ns) { clock_ = std::move(now_ns); }
  /// There is something to do: the next turn comes with the loop's next iteration.
  void kick();
  /// `then` runs when the event loop has let go of this. The context may be destroyed at once.
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
  std::uint64_t checked_ns_ = 0;  ///< when run_periodic() has done something last
  PumpCounters counters_;
  std::uint64_t turn_ended_ns_ = 0;  ///< 0: it has slept since
  std::uint64_t left_ns_ = 0;        ///< when the last turn ended, or this was made
  std::uint64_t lag_ns_ = 0, lag_since_ns_ = 0, lag_before_ns_ = 0;
  std::uint64_t reported_ns_ = 0;
  std::uint64_t trimmed_ns_ = 0;
  bool trims_ = false;  ///< the arena has more to give back
  bool unreported_ = true;
  std::uint64_t rest_ns_ = 0;
  int rests_left_ = 0;  ///< how often rest_ is to be called if nothing comes
};

}  // namespace rdma_rpc::binding

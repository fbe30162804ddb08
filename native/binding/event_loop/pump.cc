// See pump.h.
#include "binding/event_loop/pump.h"

#include <algorithm>
#include <utility>

#include "binding/event_loop/turn_length.h"

namespace rdma_rpc::binding {
namespace {

/// Time for which the pump spins after traffic. The gain of spinning is at most the cost of a wake-up: 2 us
/// on one CPU, tens of us across CPUs of a virtual machine.
constexpr std::uint64_t kSpinAfterTrafficNs = 50'000;
/// Time for which the pump polls in native code before it returns to the event loop. One iteration of the
/// event loop costs 0.3 us.
constexpr std::uint64_t kSpinPerTurnNs = 5'000;
/// Number of polls for each reading of the clock, which costs more than a poll that finds nothing.
constexpr std::uint32_t kPollsPerClock = 8;
// The following intervals are for work that no completion announces.
/// Interval at which the timeouts of cancelled calls, and of calls that wait for memory, are checked.
constexpr std::uint64_t kTickMs = 5;
/// Interval at which time limits of peers are checked while calls wait for these peers.
constexpr std::uint64_t kHoldTickMs = session::kHoldCheckNs / 1'000'000;
/// Interval at which the counters page is written.
constexpr std::uint64_t kReportMs = 100;
/// Interval of the calls of `rest_`. kRests is the number of calls after the last traffic.
constexpr std::uint64_t kRestNs = 500'000'000;
constexpr int kRests = 2;
/// The reported lag is the longest one of this window and the window before.
constexpr std::uint64_t kLagWindowNs = 1'000'000'000;
/// Interval at which registrations and arena chunks that have been idle for long are released.
constexpr std::uint64_t kSlowTickMs = 1000;

}  // namespace

Pump::Pump(session::Context& context, Polling polling,
           std::function<bool(std::uint32_t, std::uint64_t)> deliver, std::function<bool()> collect)
    : context_(&context),
      polling_(polling),
      deliver_(std::move(deliver)),
      collect_(std::move(collect)),
      left_ns_(monotonic_ns()) {}

bool Pump::open(LoopKind kind, napi_env env, std::string* error) {
  loop_ = open_event_loop(kind, env, context_->cq().fd(), *this, error);
  if (loop_ == nullptr) return false;
  one_batch_a_turn_ = loop_->promises_wait_for_turn();
  return true;
}

void Pump::kick() {
  if (context_ == nullptr) return;
  context_->touch();
  if (spinning_) return;
  wake();
  turn_ended_ns_ = last_traffic_ns_ = monotonic_ns();
}

void Pump::wake() {
  if (spinning_) return;
  spinning_ = true;
  context_->cq().acknowledge();
  loop_->spin();
}

void Pump::readable() {
  wake();
  turn();
}

void Pump::sleep() {
  // No completion would wake this thread for unfinished work, such as the rest of a bulk transfer.
  if (context_->unfinished() || context_->has_events()) return;
  // arm() polls once more after arming, because a completion that arrived in between would not wake this
  // thread.
  if (!context_->cq().arm()) return;
  ++counters_.sleeps;
  spinning_ = false;
  context_->page().turn(std::exchange(turn_ended_ns_, 0), false);
  loop_->rest();
  const bool soon = context_->wants_timer() || context_->awaits_memory();
  const bool holds = context_->wants_slow_timer();
  const bool idle = context_->mr_cache().counters().entries != 0 || context_->arena().trimmable();
  const bool next = unreported_ || rests_left_ != 0 || trims_;
  if (!soon && !holds && !next && !idle) return;
  const std::uint64_t slow_ms = next ? kReportMs : holds ? kHoldTickMs : kSlowTickMs;
  loop_->tick_after(soon ? kTickMs : slow_ms);
}

void Pump::tick() {
  wake();
  turn();
}

void Pump::stop() {
  spinning_ = true;  // wake() does nothing from now on
  loop_->stop();
}

/// Processes one batch. Returns true when the batch had events, or when there is more to do at once.
bool Pump::work(std::uint64_t now_ns) {
  const std::uint32_t events = context_->progress(clock_ ? clock_() : now_ns);
  if (events != 0) {
    ++counters_.batches;
    context_->begin_callback();
    const bool alive = deliver_(events, now_ns);
    if (context_ == nullptr) return false;
    if (!alive) {
      stop();
      return false;
    }
    // JS has taken time, so its responses are submitted with a new time.
    const std::uint64_t later_ns = this->now_ns();
    context_->set_time(later_ns);
    if (!clock_) note_lag(later_ns - now_ns);
  } else if (!context_->unfinished()) {
    return false;
  }
  const bool more = context_->finish_turn();
  return events != 0 || more;
}

/// Works while there is something to do, then polls for a while. Most responses arrive within the time that
/// one iteration of the event loop takes. Returns true when it has done some work.
bool Pump::work_and_spin() {
  const bool spins = polling_ != Polling::event;
  bool traffic = false;
  std::uint32_t polls = 0;
  std::uint64_t now = monotonic_ns();
  if (turn_ended_ns_ != 0) note_lag(now - turn_ended_ns_);
  context_->page().turn(now, true);
  // The time is measured from the end of the last turn, even if the pump has slept since then, because a
  // thread that is busy with other work wakes late.
  const std::uint64_t turn_ends = now + turn_max_ns(now - std::min(now, left_ns_));
  std::uint64_t spin_ends = now + kSpinPerTurnNs;
  while (now < turn_ends) {
    if (work(now)) {
      traffic = true;
      now = monotonic_ns();
      spin_ends = now + kSpinPerTurnNs;
      if (one_batch_a_turn_) break;
      continue;
    }
    if (context_ == nullptr || !spins) break;
    if (++polls % kPollsPerClock != 0) continue;
    now = monotonic_ns();
    if (now >= spin_ends || context_->cq().peer_shares_cpu()) break;
  }
  return traffic;
}

void Pump::turn() {
  if (context_ == nullptr || in_turn_) return;
  in_turn_ = true;
  ++counters_.turns;
  const bool traffic = work_and_spin();
  in_turn_ = false;
  if (context_ == nullptr) return;
  const std::uint64_t now = turn_ended_ns_ = left_ns_ = monotonic_ns();
  if (traffic) {
    unreported_ = true;
    rests_left_ = kRests;
    last_traffic_ns_ = now;
  }
  run_periodic(now);
  if (polling_ == Polling::busy) return;
  // When the peer needs this CPU, sleeping is the fastest way to get the peer's response.
  const bool sleeps = polling_ == Polling::event || context_->cq().peer_shares_cpu();
  if (sleeps || now - last_traffic_ns_ >= kSpinAfterTrafficNs) sleep();
}

/// Does periodic work. Every turn checks whether some of this work is due, because every sleep restarts the
/// timer.
void Pump::run_periodic(std::uint64_t now_ns) {
  if (collections_.due(context_->awaits_memory(), now_ns)) {
    const bool collected = collect_();
    collections_.done(collected, now_ns, monotonic_ns());
  }
  if (unreported_ && now_ns - reported_ns_ >= kReportMs * 1'000'000) report(now_ns);
  if (rests_left_ != 0 && now_ns - rest_ns_ >= kRestNs) {
    rest_ns_ = now_ns;
    --rests_left_;
    if (rest_) rest_();
  }
  if (trims_ && now_ns - trimmed_ns_ >= kReportMs * 1'000'000) trim(now_ns);
  if (now_ns - checked_ns_ < kSlowTickMs * 1'000'000) return;
  checked_ns_ = now_ns;
  context_->mr_cache().expire(this->now_ns());
  context_->arena().mark_idle();
  trim(now_ns);
}

void Pump::trim(std::uint64_t now_ns) {
  trimmed_ns_ = now_ns;
  trims_ = context_->arena().trim_idle();
}

void Pump::report(std::uint64_t now_ns) {
  reported_ns_ = now_ns;
  unreported_ = false;
  if (now_ns - lag_since_ns_ >= kLagWindowNs) {
    lag_before_ns_ = std::exchange(lag_ns_, 0);
    lag_since_ns_ = now_ns;
  }
  counters_.lag_max_ns = std::max(lag_ns_, lag_before_ns_);
  if (report_) report_();
}

void Pump::close(std::function<void()> then) {
  if (context_ == nullptr) return;
  context_ = nullptr;
  spinning_ = true;
  loop_->close(std::move(then));
}

}  // namespace rdma_rpc::binding

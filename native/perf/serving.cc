// Implements the loop of a side that does not measure, or has finished measuring. The side answers, polls
// completions and checks messages until its peer reports the end. See pair.h.
#include "perf/pair.h"

namespace rdma_rpc::perf {
namespace {

/// Time for which a message that a reliable device has delivered may stay unnoticed.
constexpr std::uint64_t kLateNs = 5'000'000'000;
/// Time to wait for a message that may be lost.
constexpr std::uint64_t kLostNs = 20'000'000;

}  // namespace

bool Pair::has_all(const Step& step) {
  if (!stopped_.load(std::memory_order_acquire)) return false;
  const std::uint64_t expected = expected_.load(std::memory_order_relaxed);
  return step.verb != Verb::send || received() - received_before_ >= expected;
}

void Pair::serve(const Step& step) {
  const bool answers =
      step.latency && !step.measures && (step.verb == Verb::send || step.verb == Verb::write);
  // When the device does everything by itself, this side has nothing to wait for, and leaves the processor to
  // other programs. The passive side of perftest sleeps, too.
  const bool sleeps = options_.events || (!answers && step.verb != Verb::send && !moves_in_poll_);
  const Queue& queue = queues_[0];
  std::uint64_t next = queue.received;
  std::uint64_t until = 0;
  if (answers) begin_latency(step);
  while (error_.empty() && !has_all(step)) {
    if (stopped_.load(std::memory_order_relaxed)) {
      const bool reliable = endpoint_->limits().reliable;
      const std::uint64_t now = now_ns();
      if (until == 0) until = now + (reliable ? kLateNs : kLostNs);
      if (now > until) {
        if (reliable)
          fail("of " + std::to_string(expected_.load()) + " messages only " +
               std::to_string(received() - received_before_) + " have come");
        return;
      }
    }
    if (!answers) {
      if (poll(&step) == 0) idle(false, sleeps);
      continue;
    }
    answer(step, next);
    if (queue.received <= next) continue;
    ++next;
    if (!ended() && post_next(step, false)) settle(step, options_.depth);
  }
}

}  // namespace rdma_rpc::perf

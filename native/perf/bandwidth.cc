// Runs bandwidth tests. The number of messages in flight is the depth, as in perftest's *_bw. See pair.h.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "perf/pair.h"
#include "perf/ticks.h"

namespace rdma_rpc::perf {
namespace {

/// Limit of messages for which the peak is computed, because the search for the fastest span is quadratic.
constexpr std::size_t kPeakMessages = 5'000;
/// Number of polls per reading of the clock, when the clock is only needed to detect that the time is over.
constexpr std::uint32_t kIterationsPerClock = 16;

/// Returns the ticks per message of the fastest span from a post to a completion.
double quickest(const std::vector<std::uint64_t>& posted, const std::vector<std::uint64_t>& done) {
  double best = 0;
  for (std::size_t i = 0; i < posted.size(); ++i) {
    for (std::size_t j = i; j < done.size(); ++j) {
      const double each =
          static_cast<double>(done[j] - std::min(done[j], posted[i])) / static_cast<double>(j - i + 1);
      if (best == 0 || each < best) best = each;
    }
  }
  return best;
}

}  // namespace

/// Returns the number of messages that may be posted now.
std::uint64_t Pair::room(const Step& step, std::uint32_t queue_pair, std::uint64_t until) {
  const Queue& queue = queues_[queue_pair];
  std::uint64_t count = std::min(until - queue.posted, options_.depth - (queue.posted - queue.completed));
  if (step.verb != Verb::send || !reliable_) return count;
  std::uint64_t* word = reinterpret_cast<std::uint64_t*>(data_ + layout_.taken(queue_pair));
  const std::uint64_t taken = std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_relaxed);
  const std::uint64_t open = queue.posted - std::min(taken, queue.posted);
  return std::min(count, options_.receive_depth - std::min<std::uint64_t>(open, options_.receive_depth));
}

Outcome Pair::measure_bandwidth(const Step& step) {
  Outcome outcome;
  const std::uint64_t all = step.messages * options_.queue_pairs;
  const bool wants_peak = step.duration_ns == 0 && all <= kPeakMessages;
  std::vector<std::uint64_t> posted_ticks, done_ticks, until(options_.queue_pairs);
  if (wants_peak) {
    posted_ticks.reserve(all);
    done_ticks.reserve(all);
    done_ticks_ = &done_ticks;
  }
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < options_.queue_pairs; ++i) {
    until[i] = queues_[i].posted + step.messages;
    first += queues_[i].posted;
  }
  const CpuTime before = cpu_time();
  const TickScale scale;
  const std::uint64_t begun = scale.begun_ns();
  bool over = false;
  for (std::uint32_t iteration = 1; error_.empty(); ++iteration) {
    if (step.duration_ns != 0 && iteration % kIterationsPerClock == 0 && now_ns() - begun >= step.duration_ns)
      over = true;
    bool posted = false, done = true;
    for (std::uint32_t i = 0; i < options_.queue_pairs && error_.empty(); ++i) {
      Queue& queue = queues_[i];
      if (over) until[i] = queue.posted;
      for (std::uint64_t count = room(step, i, until[i]); count != 0 && error_.empty();) {
        const std::uint64_t now = std::min<std::uint64_t>(count, step.post_list);
        if (wants_peak) posted_ticks.insert(posted_ticks.end(), now, ticks());
        // The last request of a batch is signaled, so that the queue never fills with unsignaled requests.
        if (!post_messages(step, i, now, count == now)) break;
        count -= now;
        posted = true;
      }
      done = done && queue.completed == until[i];
    }
    if (done) break;
    if (poll(&step) == 0 && !posted && !idle(true)) break;
  }
  const std::uint64_t ended = now_ns();
  const double tick_ns = scale.each();
  const CpuTime after = cpu_time();
  done_ticks_ = nullptr;
  for (const Queue& queue : queues_) outcome.messages += queue.completed;
  outcome.messages -= first;
  outcome.elapsed_ns = ended - begun;
  outcome.cpu = {after.user_ns - before.user_ns, after.system_ns - before.system_ns};
  if (wants_peak) outcome.peak_ns = quickest(posted_ticks, done_ticks) * tick_ns;
  return outcome;
}

}  // namespace rdma_rpc::perf

// Latency tests send one message at a time, as perftest's *_lat do. The peer answers a SEND or WRITE with a
// SEND or WRITE of its own, and half of the round trip counts. A READ or atomic operation brings its own
// answer. See pair.h.
#include <algorithm>
#include <atomic>

#include "perf/pair.h"
#include "perf/ticks.h"

namespace rdma_rpc::perf {
namespace {

/// Number of times that memory is read between polls of the completion queue, on devices that write by
/// themselves. A poll takes as long as many reads of memory, so a message that arrives during a poll is
/// noticed only after the poll.
constexpr int kLooks = 1024;
/// Time that the rest of a message may take to arrive after its last byte. After the first message that has
/// not arrived completely, later messages get only kNextRestNs. Otherwise a test of a thousand messages would
/// take hours.
constexpr std::uint64_t kRestNs = 1'000'000'000, kNextRestNs = 10'000'000;
constexpr double kSampleMax = UINT32_MAX;

}  // namespace

/// Returns whether the peer's WRITE has arrived. The last byte of the WRITE is derived from the WRITE's
/// number.
bool Pair::has_come(const Step& step, std::uint64_t number, bool look) {
  const std::byte* last = data_ + layout_.in(0, 0) + step.bytes - 1;
  const auto wanted = static_cast<std::byte>(number + 1);
  for (int i = 0; i < (look ? kLooks : 1); ++i) {
    if (*static_cast<const volatile std::byte*>(last) == wanted) {
      std::atomic_thread_fence(std::memory_order_acquire);
      return true;
    }
  }
  return false;
}

bool Pair::await_written(const Step& step, std::uint64_t number) {
  const bool look = !moves_in_poll_;
  while (!has_come(step, number, look)) {
    if (poll(&step) == 0 && !idle(step.measures)) return false;
    if (!error_.empty()) return false;
  }
  quiet_since_ns_ = 0;
  if (!options_.validate) return true;
  const std::uint64_t until = now_ns() + (corrupt_ == 0 ? kRestNs : kNextRestNs);
  const std::byte* found = data_ + layout_.in(0, 0);
  while (pattern(0, true).difference({found, step.bytes - 1}, number).has_value() && now_ns() < until)
    poll(&step);
  check(step, 0, layout_.in(0, 0), number, number, step.bytes - 1);
  return error_.empty();
}

/// Waits until fewer than `under_way` requests are in flight. Like perftest, the loops call this function
/// before they wait for the peer's message. Nothing then has to be done between that message and its answer.
void Pair::settle(const Step& step, std::uint64_t under_way) {
  const Queue& queue = queues_[0];
  while (queue.posted - queue.completed >= under_way && error_.empty())
    if (poll(&step) == 0 && !idle(step.measures)) return;
}

/// Waits for the peer's message number `number`, which may already have arrived with a completion.
void Pair::answer(const Step& step, std::uint64_t number) {
  Queue& queue = queues_[0];
  if (step.verb == Verb::write) {
    if (await_written(step, number)) ++queue.received;
    return;
  }
  while (queue.received <= number && error_.empty()) {
    if (poll(&step) == 0 && !idle(step.measures)) return;
  }
}

Outcome Pair::measure_latency(const Step& step) {
  const bool answered = step.verb == Verb::send || step.verb == Verb::write;
  const bool sampled = step.duration_ns == 0;
  Outcome outcome;
  std::vector<std::uint64_t> times;
  if (sampled) times.reserve(step.messages + 1);
  begin_latency(step);
  const CpuTime before = cpu_time();
  const TickScale scale;
  const std::uint64_t begun = scale.begun_ns();
  std::uint64_t last = begun;
  if (sampled) times.push_back(ticks());
  while (!ended() && outcome.messages < step.messages && (sampled || last - begun < step.duration_ns)) {
    const std::uint64_t number = queues_[0].received;
    if (!post_next(step, !answered)) break;
    settle(step, answered ? options_.depth : 1);
    if (answered) answer(step, number);
    if (ended()) break;
    if (sampled)
      times.push_back(ticks());
    else
      last = now_ns();
    ++outcome.messages;
  }
  if (sampled) last = now_ns();
  const double each_ns = scale.each() / (answered ? 2 : 1);
  const CpuTime after = cpu_time();
  outcome.elapsed_ns = last - begun;
  outcome.cpu = {after.user_ns - before.user_ns, after.system_ns - before.system_ns};
  if (sampled) outcome.latency_ns.reserve(outcome.messages);
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double took = static_cast<double>(times[i] - std::min(times[i - 1], times[i])) * each_ns;
    outcome.latency_ns.push_back(static_cast<std::uint32_t>(std::min(took, kSampleMax)));
  }
  return outcome;
}

}  // namespace rdma_rpc::perf

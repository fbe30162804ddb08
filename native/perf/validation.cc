// Checks received content, in tests that validate. See pair.h.
#include <cstdio>
#include <cstring>

#include "perf/pair.h"

namespace rdma_rpc::perf {

void Pair::corrupt(std::string what) {
  if (++corrupt_ == 1) first_corrupt_ = std::move(what);
}

void Pair::check(const Step& step, std::uint32_t queue_pair, std::uint64_t at, std::uint64_t number,
                 std::uint64_t pattern_number, std::size_t bytes) {
  const std::byte* found = data_ + at;
  const auto where = pattern(queue_pair, true).difference({found, bytes}, pattern_number);
  if (!where.has_value()) return;
  char value[8];
  std::snprintf(value, sizeof value, "0x%02x", std::to_integer<unsigned>(found[*where]));
  corrupt("message " + std::to_string(number) + " of queue pair " + std::to_string(queue_pair) + ", " +
          std::to_string(step.bytes) + " bytes, differs from byte " + std::to_string(*where) + " on (" +
          value + ")");
}

/// Checks the results of READs and atomic operations up to this one.
void Pair::check_fetched(const Step& step, std::uint32_t queue_pair, std::uint64_t last) {
  for (std::uint64_t number = queues_[queue_pair].completed; number <= last; ++number) {
    const std::uint64_t at = layout_.in(queue_pair, number);
    if (step.verb == Verb::read) check(step, queue_pair, at, number, number % layout_.slots(), step.bytes);
    if (step.verb != Verb::fetch_add && step.verb != Verb::compare_swap) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, data_ + at, sizeof value);
    check_count(value, queue_pair, number);
  }
}

void Pair::check_received(const Step& step, std::uint32_t queue_pair, std::uint64_t at, std::uint32_t bytes) {
  const std::uint64_t number = queues_[queue_pair].received;
  if (bytes == step.bytes) {
    check(step, queue_pair, at + endpoint_->limits().header_bytes, number, number, step.bytes);
    return;
  }
  corrupt("message " + std::to_string(number) + " of queue pair " + std::to_string(queue_pair) + " has " +
          std::to_string(bytes) + " bytes, not " + std::to_string(step.bytes));
}

void Pair::check_count(std::uint64_t found, std::uint32_t queue_pair, std::uint64_t number) {
  if (found == number) return;
  corrupt("atomic operation " + std::to_string(number) + " of queue pair " + std::to_string(queue_pair) +
          " found " + std::to_string(found) + " at the peer, where as many must have gone before it");
}

void Pair::check_written(const Step& step, std::uint64_t peer_sent, Outcome* outcome) {
  if (!options_.validate || step.verb != Verb::write || step.latency || !step.receives) return;
  for (std::uint32_t i = 0; i < options_.queue_pairs; ++i) {
    const std::uint64_t last = std::min(peer_sent, layout_.slots());
    for (std::uint64_t number = peer_sent - last; number < peer_sent; ++number)
      check(step, i, layout_.in(i, number), number, number, step.bytes);
  }
  outcome->corrupt = corrupt_;
  outcome->first_corrupt = first_corrupt_;
}

}  // namespace rdma_rpc::perf

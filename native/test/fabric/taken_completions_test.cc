// The class determines, only from the results of polls, when everything that was in a completion queue at
// some moment has been polled. The tests use seeded polls of a queue that is filled all the time.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fabric/taken_completions.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint64_t kEntries = 64;

/// Completions are numbered in the order in which they arrive.
struct Queue {
  void fill(std::uint64_t count) { came += std::min(count, kEntries - (came - out)); }
  void poll(std::uint64_t most) {
    const std::uint64_t count = std::min(most, came - out);
    out += count;
    taken.took(count);
    if (count < most) taken.found_empty(kEntries);
  }
  std::uint64_t came = 0, out = 0;
  TakenCompletions taken;
};

TEST(TakenCompletions, PassAMarkWhenAllThatWasThereHasComeOutAndNotBefore) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Queue queue;
    queue.fill(random() % kEntries);
    const std::uint64_t mark = queue.taken.mark(kEntries), there = queue.came;
    for (int polls = 0; !queue.taken.has_passed(mark); ++polls) {
      ASSERT_LE(queue.out, there + kEntries) << "it waits for more than there can have been";
      queue.fill(random() % (2 * kEntries));
      queue.poll(1 + random() % 16);
    }
    EXPECT_GE(queue.out, there);
  }
}

TEST(TakenCompletions, PassAMarkAsSoonAsTheQueueIsEmpty) {
  Queue queue;
  queue.fill(3);
  const std::uint64_t mark = queue.taken.mark(kEntries);
  queue.poll(3);
  EXPECT_FALSE(queue.taken.has_passed(mark));
  queue.poll(1);
  EXPECT_TRUE(queue.taken.has_passed(mark));
  EXPECT_FALSE(queue.taken.has_passed(queue.taken.mark(kEntries)));
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

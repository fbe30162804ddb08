// Tests the amount of arena memory that is reported to V8. The tests use a model of V8 that adds and
// subtracts as the real V8 does, including its delays. Whatever the order of events, V8's count must never
// fall below what V8 itself has added.
#include "binding/buffers/counted_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>

namespace rdma_rpc::binding {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::int64_t kMiBs = std::int64_t{kMiB};

/// V8's count of external memory. A collected buffer is subtracted at once, and its owner learns of it later.
struct V8 {
  CountedMemory memory{256 * kMiB};
  std::int64_t counted = 0;
  std::deque<std::size_t> unheard;

  void make(std::size_t bytes) {
    counted += static_cast<std::int64_t>(bytes);
    counted += memory.made(bytes);
  }
  void collect(std::size_t bytes) {
    counted -= static_cast<std::int64_t>(bytes);
    unheard.push_back(bytes);
  }
  void hear() {
    counted += memory.freed(unheard.front());
    unheard.pop_front();
  }
};

TEST(CountedMemory, OfLeasesThatComeBackStaysCountedAndIsNoGrowthWhenItIsLentAgain) {
  V8 v8;
  for (int i = 0; i < 10; ++i) v8.make(kMiB);
  for (int round = 0; round < 1000; ++round) {
    v8.collect(kMiB);
    v8.hear();
    ASSERT_EQ(v8.counted, 10 * kMiBs);
    v8.make(kMiB);
    ASSERT_EQ(v8.counted, 10 * kMiBs);
  }
}

TEST(CountedMemory, BeyondAQuarterOfTheArenaIsGrowthEachTime) {
  V8 v8;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) v8.make(kMiB);
    EXPECT_EQ(v8.counted, 100 * kMiBs);
    for (int i = 0; i < 100; ++i) v8.collect(kMiB);
    while (!v8.unheard.empty()) v8.hear();
    EXPECT_EQ(v8.counted, 64 * kMiBs);
  }
}

TEST(CountedMemory, OfAnIdleProgramIsGivenUpWhateverComesBackLater) {
  V8 v8;
  for (int i = 0; i < 8; ++i) v8.make(kMiB);
  for (int i = 0; i < 4; ++i) v8.collect(kMiB);
  while (!v8.unheard.empty()) v8.hear();
  EXPECT_EQ(v8.memory.rest(), 0) << "something was lent since the last time";
  v8.counted += v8.memory.rest();
  EXPECT_EQ(v8.counted, 4 * kMiBs);
  for (int i = 0; i < 4; ++i) v8.collect(kMiB);
  while (!v8.unheard.empty()) v8.hear();
  EXPECT_EQ(v8.counted, 0);
  v8.make(kMiB);
  v8.collect(kMiB);
  v8.hear();
  EXPECT_EQ(v8.counted, kMiBs) << "it is busy again";
}

TEST(CountedMemory, NeverMakesV8CountLessThanItHasAddedItself) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    V8 v8;
    std::deque<std::size_t> alive;
    std::int64_t own = 0;
    for (int step = 0; step < 2000; ++step) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          const std::size_t bytes = std::size_t{4096} << random() % 12;
          alive.push_back(bytes);
          own += static_cast<std::int64_t>(bytes);
          v8.make(bytes);
          break;
        }
        case 3:
        case 4:
        case 5:
          if (alive.empty()) break;
          own -= static_cast<std::int64_t>(alive.front());
          v8.collect(alive.front());
          alive.pop_front();
          break;
        case 6:
          if (!v8.unheard.empty()) v8.hear();
          break;
        default:
          if (random() % 16 == 0) v8.counted += v8.memory.rest();
      }
      ASSERT_GE(v8.counted, own) << "seed " << seed << ", step " << step;
      ASSERT_EQ(v8.counted, own + static_cast<std::int64_t>(v8.memory.kept()));
      ASSERT_LE(v8.memory.kept(), 64 * kMiB);
    }
    v8.counted += v8.memory.close();
    ASSERT_EQ(v8.counted, own) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rdma_rpc::binding

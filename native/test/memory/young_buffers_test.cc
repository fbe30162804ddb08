// Tests when V8 is asked to collect its young objects: when messages were lent and not returned. The
// collections take at most a share of the thread's time, unless a collection is overdue.
#include "binding/buffers/young_buffers.h"

#include <gtest/gtest.h>

namespace rdma_rpc::binding {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::uint64_t kMs = 1'000'000;

TEST(YoungBuffers, ReturnedBuffersRequestNoCollection) {
  YoungBuffers young(256 * kMiB);
  for (int i = 0; i < 10'000; ++i) {
    young.lent(kMiB);
    ASSERT_FALSE(young.wanted());
    young.returned(kMiB);
  }
  EXPECT_EQ(young.out(), 0u);
}

TEST(YoungBuffers, DroppedBuffersRequestOneEachFourMebibytes) {
  YoungBuffers young(256 * kMiB);
  int collections = 0;
  for (int i = 0; i < 1024; ++i) {
    young.lent(kMiB / 4);
    const std::uint64_t now = 1000 * kMs + static_cast<std::uint64_t>(i) * kMs;
    if (!young.due(now)) continue;
    ++collections;
    young.done(now, now);
    young.collected(young.out());
  }
  EXPECT_EQ(collections, 64);
}

TEST(YoungBuffers, BuffersOfASmallArenaRequestSooner) {
  YoungBuffers young(8 * kMiB);
  young.lent(kMiB - 1);
  EXPECT_FALSE(young.wanted());
  young.lent(1);
  EXPECT_TRUE(young.wanted());
}

TEST(YoungBuffers, KeptBuffersRequestMoreAndMoreSeldom) {
  YoungBuffers young(1024 * kMiB);
  int collections = 0;
  for (std::uint64_t i = 0; i < 512; ++i) {
    young.lent(kMiB);
    if (!young.due(i * kMs)) continue;
    ++collections;
    young.done(i * kMs, i * kMs);
  }
  // Between two collections the memory grows by a quarter. With a fixed distance there would be 128
  // collections.
  EXPECT_LT(collections, 24);
  EXPECT_EQ(young.out(), 512 * kMiB);
}

TEST(YoungBuffers, TakeATenthOfTheTimeUntilTheyAreOverdue) {
  YoungBuffers young(256 * kMiB);
  young.lent(4 * kMiB);
  ASSERT_TRUE(young.due(1000 * kMs));
  young.done(1000 * kMs, 1005 * kMs);  // a large heap, whose collection takes 5 ms
  young.collected(4 * kMiB);
  young.lent(4 * kMiB);
  EXPECT_FALSE(young.due(1006 * kMs));
  EXPECT_FALSE(young.due(1049 * kMs));
  EXPECT_TRUE(young.due(1050 * kMs));
  young.lent(8 * kMiB);
  EXPECT_TRUE(young.due(1006 * kMs));
}

}  // namespace
}  // namespace rdma_rpc::binding

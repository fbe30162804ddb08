// When V8 is made to collect for calls that wait for memory: a fixed share of the time, whatever one costs.
#include "binding/event_loop/collections.h"

#include <gtest/gtest.h>

namespace rdma_rpc::binding {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// Percent of ten minutes that collections take, each of which costs so much, while calls wait all the time.
std::uint64_t percent(std::uint64_t cost_ns, std::uint64_t& count) {
  Collections collections;
  std::uint64_t spent = 0, now = 1000 * kMs;
  const std::uint64_t end = now + 600'000 * kMs;
  for (; now < end; now += kMs) {
    if (!collections.due(true, now)) continue;
    collections.done(now, now + cost_ns);
    now += cost_ns;
    spent += cost_ns;
    ++count;
  }
  return spent * 100 / (600'000 * kMs);
}

TEST(Collections, TakeAFixedShareOfTheTime) {
  for (const std::uint64_t ms : {1u, 5u, 80u, 700u, 9000u}) {
    SCOPED_TRACE(ms);
    std::uint64_t count = 0;
    EXPECT_LE(percent(ms * kMs, count), Collections::kPercent);
    EXPECT_GE(count, 600'000 / (ms * 100 / Collections::kPercent + 10));
  }
}

TEST(Collections, AreNotMadeForWhatComesBackByItself) {
  Collections collections;
  for (std::uint64_t now = kMs; now < 1000 * kMs; now += kMs) {
    EXPECT_FALSE(collections.due(now % (4 * kMs) != 0, now));
  }
}

TEST(Collections, AreDueSoonAfterCallsBeginToWait) {
  Collections collections;
  EXPECT_FALSE(collections.due(false, 1000 * kMs));
  EXPECT_FALSE(collections.due(true, 2000 * kMs));
  EXPECT_TRUE(collections.due(true, 2000 * kMs + Collections::kPauseMinNs));
}

}  // namespace
}  // namespace rdma_rpc::binding

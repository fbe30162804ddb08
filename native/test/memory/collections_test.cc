// Tests that V8 is asked to collect for a fixed share of the thread's time. The share depends neither on the
// cost of a collection nor on the caller.
#include "binding/event_loop/collections.h"

#include <gtest/gtest.h>

#include <vector>

namespace rdma_rpc::binding {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kLongMs = 600'000;

/// The share of time that collections took within ten minutes, and their number.
struct Taken {
  std::uint64_t percent = 0, count = 0;
};

/// Simulates `askers` pumps whose calls wait all the time, and a stream that checks every 100 ms. Each
/// collection takes `cost_ns`.
Taken taken(std::size_t askers, std::uint64_t cost_ns) {
  CollectionBudget budget;
  std::vector<Collections> pumps(askers, Collections(budget));
  std::uint64_t spent = 0, count = 0, now = 1000 * kMs, look = now;
  const std::uint64_t end = now + kLongMs * kMs;
  const auto collect = [&] {
    now += cost_ns;
    spent += cost_ns;
    ++count;
    return now - cost_ns;
  };
  for (; now < end; now += kMs) {
    for (Collections& pump : pumps) {
      if (!pump.due(true, now)) continue;
      const std::uint64_t began = collect();
      pump.done(true, began, now);
    }
    if (now < look) continue;
    look = now + 100 * kMs;
    if (now >= budget.next_ns()) {
      const std::uint64_t began = collect();
      budget.spend(began, now);
    }
  }
  return {spent * 100 / (now - 1000 * kMs), count};
}

TEST(Collections, TakeAFixedShareOfTheTime) {
  for (const std::size_t askers : {1u, 2u, 5u}) {
    for (const std::uint64_t ms : {1u, 5u, 80u, 700u, 9000u}) {
      SCOPED_TRACE(ms);
      const Taken all = taken(askers, ms * kMs);
      EXPECT_LE(all.percent, CollectionBudget::kPercent);
      EXPECT_GE(all.count, kLongMs / (ms * 100 / CollectionBudget::kPercent + 10));
    }
  }
}

TEST(Collections, AreNotMadeForBuffersThatAreReturned) {
  CollectionBudget budget;
  Collections collections(budget);
  for (std::uint64_t now = kMs; now < 1000 * kMs; now += kMs) {
    EXPECT_FALSE(collections.due(now % (4 * kMs) != 0, now));
  }
}

TEST(Collections, AreDueSoonAfterCallsBeginToWait) {
  CollectionBudget budget;
  Collections collections(budget);
  EXPECT_FALSE(collections.due(false, 1000 * kMs));
  EXPECT_FALSE(collections.due(true, 2000 * kMs));
  EXPECT_TRUE(collections.due(true, 2000 * kMs + CollectionBudget::kPauseMinNs));
}

TEST(Collections, ThatFindNothingTakeNoTimeFromOthers) {
  CollectionBudget budget;
  Collections idle(budget);
  EXPECT_FALSE(idle.due(true, 2000 * kMs));
  EXPECT_TRUE(idle.due(true, 2010 * kMs));
  idle.done(false, 2010 * kMs, 2010 * kMs);
  EXPECT_LE(budget.next_ns(), 2010 * kMs);
  EXPECT_FALSE(idle.due(true, 2010 * kMs + CollectionBudget::kPauseMinNs - 1));
}

TEST(Collections, OfAThreadShareOneBudget) {
  EXPECT_EQ(&CollectionBudget::of_thread(), &CollectionBudget::of_thread());
}

}  // namespace
}  // namespace rdma_rpc::binding

// Tests how long an iteration of the pump may take.
#include "binding/event_loop/turn_length.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rdma_rpc::binding {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

TEST(TurnLength, IsShortWhereTheLoopIteratesAtOnce) {
  EXPECT_EQ(turn_max_ns(0), kTurnMinNs);
  EXPECT_EQ(turn_max_ns(kTurnMinNs), kTurnMinNs);
}

TEST(TurnLength, IsProportionalToTheLoopsAbsence) {
  EXPECT_EQ(turn_max_ns(4 * kMs), 1 * kMs);
  EXPECT_EQ(turn_max_ns(20 * kMs), 5 * kMs);
}

TEST(TurnLength, LeavesTheLoopMostOfTheTime) {
  for (std::uint64_t away_ns = kTurnMinNs * kOthersShare; away_ns < 1000 * kMs; away_ns += 77'777)
    EXPECT_LE(turn_max_ns(away_ns) * kOthersShare, away_ns) << away_ns;
}

TEST(TurnLength, HasABound) {
  EXPECT_EQ(turn_max_ns(1000 * kMs), kTurnMaxNs);
  EXPECT_EQ(turn_max_ns(UINT64_MAX), kTurnMaxNs);
}

}  // namespace
}  // namespace rdma_rpc::binding

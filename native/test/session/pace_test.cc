// Tests Pace. A peer that moves the required bytes in each period is in time. A peer that moves fewer bytes
// is late until it has moved enough in one period.
#include "session/pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace rdma_rpc::session::test {
namespace {

constexpr std::uint64_t kPeriodNs = 1000;

/// One check, with its time, the number of bytes that have moved by then, and the number of bytes that are
/// due from then on.
struct Look {
  std::uint64_t now_ns, moved, due;
  bool in_time;
};
struct Case {
  const char* name;
  std::vector<Look> looks;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class Paces : public testing::TestWithParam<Case> {};

TEST_P(Paces, AreJudgedByWhatEachPeriodBrings) {
  Pace pace(kPeriodNs);
  for (const Look& look : GetParam().looks) {
    EXPECT_EQ(pace.look(look.now_ns, look.moved, look.due), look.in_time) << "at " << look.now_ns;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, Paces,
    testing::Values(
        Case{"APeerThatStandsStill", {{5, 0, 100, true}, {1004, 0, 100, true}, {1005, 0, 100, false}}},
        Case{"APeerThatMovesAByteNowAndThen",
             {{0, 0, 100, true}, {400, 1, 99, true}, {800, 2, 98, true}, {1000, 3, 97, false}}},
        Case{"APeerThatMovesWhatIsDueEachTime",
             {{0, 0, 100, true}, {900, 100, 100, true}, {1800, 200, 100, true}, {2700, 300, 100, true}}},
        Case{"ALittleThatIsAllThereIs", {{0, 0, 7, true}, {900, 7, 100, true}, {1899, 50, 100, true}}},
        Case{"APeriodBeginsWhenTheLastOneHasBroughtItsPart",
             {{0, 0, 100, true}, {100, 100, 100, true}, {1099, 150, 100, true}, {1100, 150, 100, false}}},
        // Bytes that come too late count for the next period, not for their own.
        Case{"APeerThatGoesOn",
             {{0, 0, 100, true},
              {1500, 0, 100, false},
              {5000, 100, 100, false},
              {5500, 150, 100, false},
              {5900, 200, 100, true}}},
        Case{"APeerWithoutAnythingDue", {{0, 0, 0, true}, {100, 0, 0, true}, {200, 0, 0, true}}}));

TEST(Pace, RestsBetweenTransfersAndBeginsAnew) {
  Pace pace(kPeriodNs);
  EXPECT_TRUE(pace.look(0, 0, 100));
  pace.rest();
  EXPECT_TRUE(pace.look(90'000, 0, 100));
  EXPECT_TRUE(pace.look(90'999, 0, 100));
  EXPECT_FALSE(pace.look(91'000, 0, 100));
  pace.rest();
  EXPECT_TRUE(pace.look(92'000, 0, 100));
}

}  // namespace
}  // namespace rdma_rpc::session::test

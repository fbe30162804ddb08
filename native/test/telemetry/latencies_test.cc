// Tests entries of methods in the counters page: which methods get an entry, which part of a name is kept,
// and in which bucket a latency is counted.
#include "telemetry/latencies.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

namespace rdma_rpc::telemetry {
namespace {

constexpr std::uint64_t kUnitNs = 1u << kTimeShift;

class LatenciesOfMethods : public testing::Test {
 protected:
  /// Returns the entry with this id and side, or null when there is none.
  const MethodRow* row(std::uint64_t id, bool client) const {
    for (std::uint32_t at = 0; at < kMethodRows; ++at)
      if (rows_[at].id == id && rows_[at].client == (client ? 1 : 0)) return &rows_[at];
    return nullptr;
  }
  std::uint64_t calls() const {
    std::uint64_t sum = 0;
    for (std::uint32_t at = 0; at < kMethodRows; ++at) sum += rows_[at].id == 0 ? 0 : rows_[at].calls;
    return sum;
  }
  void call(std::uint32_t method, bool client) { latencies_.note(method, client, 0, kUnitNs, true); }

  std::unique_ptr<MethodRow[]> rows_{new MethodRow[kMethodRows]{}};
  Latencies latencies_{rows_.get()};
};

TEST_F(LatenciesOfMethods, ARowForEachSideOfANamedMethod) {
  latencies_.name(7, "kv.v1.Kv/Get");
  call(7, false);
  call(7, true);
  call(7, true);
  ASSERT_NE(row(7, false), nullptr);
  ASSERT_NE(row(7, true), nullptr);
  EXPECT_STREQ(row(7, false)->name, "kv.v1.Kv/Get");
  EXPECT_EQ(row(7, false)->calls, 1u);
  EXPECT_EQ(row(7, true)->calls, 2u);
}

TEST_F(LatenciesOfMethods, BeyondTheRowsAllShareAVisibleOne) {
  for (std::uint32_t method = 1; method <= 2 * kMethodRows; ++method) {
    latencies_.name(method, "m" + std::to_string(method));
    call(method, false);
    call(method, true);
  }
  EXPECT_EQ(calls(), 4u * kMethodRows);
  for (const bool client : {false, true}) {
    ASSERT_NE(row(kOtherMethods, client), nullptr);
    EXPECT_STREQ(row(kOtherMethods, client)->name, "(other methods)");
    EXPECT_GT(row(kOtherMethods, client)->calls, kMethodRows);
  }
  EXPECT_GT(kOtherMethods, std::numeric_limits<std::uint32_t>::max());
}

TEST_F(LatenciesOfMethods, InventedIdsTakeNoRowOfAServersMethods) {
  for (std::uint32_t made_up = 1000; made_up < 1000 + 2 * kMethodRows; ++made_up) call(made_up, false);
  latencies_.name(7, "kv.v1.Kv/Get");
  call(7, false);
  ASSERT_NE(row(7, false), nullptr);
  EXPECT_EQ(row(7, false)->calls, 1u);
  ASSERT_NE(row(kOtherMethods, false), nullptr);
  EXPECT_EQ(row(kOtherMethods, false)->calls, 2u * kMethodRows);
  EXPECT_EQ(row(1000, false), nullptr);
}

TEST_F(LatenciesOfMethods, AClientsMethodHasARowBeforeItHasAName) {
  call(9, true);
  ASSERT_NE(row(9, true), nullptr);
  EXPECT_STREQ(row(9, true)->name, "");
  latencies_.name(9, "kv.v1.Kv/Put");
  EXPECT_STREQ(row(9, true)->name, "kv.v1.Kv/Put");
}

TEST_F(LatenciesOfMethods, NamesBeyondTheLimitAreNotKept) {
  for (std::uint32_t method = 1; method <= kMethodNamesMax + 1; ++method)
    latencies_.name(method, "m" + std::to_string(method));
  call(kMethodNamesMax, false);
  call(kMethodNamesMax + 1, false);
  EXPECT_NE(row(kMethodNamesMax, false), nullptr);
  EXPECT_EQ(row(kMethodNamesMax + 1, false), nullptr);
}

TEST_F(LatenciesOfMethods, ANameIsCutAtACharacter) {
  const std::size_t room = kMethodNameBytes - 1;
  const struct {
    std::string given, kept;
  } cases[] = {
      {std::string(room, 'x'), std::string(room, 'x')},
      {std::string(room + 1, 'x'), std::string(room, 'x')},
      {std::string(1000, 'x'), std::string(room, 'x')},
      // These names end with a character of two or of four bytes. Only the first bytes of that character
      // would fit.
      {std::string(room - 1, 'x') + "\xc3\xa9", std::string(room - 1, 'x')},
      {std::string(room - 3, 'x') + "\xf0\x9f\x98\x80", std::string(room - 3, 'x')},
      {std::string(room - 2, 'x') + "\xc3\xa9y", std::string(room - 2, 'x') + "\xc3\xa9"},
  };
  std::uint32_t method = 1;
  for (const auto& [given, kept] : cases) {
    // The name is set once before the method's first call, and once after it.
    latencies_.name(method, given);
    call(method, false);
    EXPECT_STREQ(row(method, false)->name, kept.c_str());
    call(++method, true);
    latencies_.name(method, given);
    EXPECT_STREQ(row(method++, true)->name, kept.c_str());
  }
}

TEST(LatencyBuckets, AreAnEighthOfAPowerOfTwoWide) {
  const struct {
    std::uint32_t units, bucket;
  } cases[] = {{0, 0},   {1, 1},   {2, 9},   {3, 13},  {4, 17},
               {7, 23},  {8, 25},  {9, 26},  {15, 32}, {16, 33},
               {17, 33}, {18, 34}, {31, 40}, {32, 41}, {UINT32_MAX, kLatencyBuckets - 1}};
  for (const auto& [units, bucket] : cases) EXPECT_EQ(latency_bucket(units), bucket) << units;
}

TEST(LatencyBuckets, NeverGoDownAndEndWithTheLast) {
  std::uint32_t before = 0;
  for (std::uint64_t units = 1; units <= UINT32_MAX; units += 1 + units / 64) {
    const std::uint32_t bucket = latency_bucket(static_cast<std::uint32_t>(units));
    EXPECT_GE(bucket, before);
    EXPECT_LT(bucket, kLatencyBuckets);
    before = bucket;
  }
  EXPECT_EQ(before, kLatencyBuckets - 1);
}

}  // namespace
}  // namespace rdma_rpc::telemetry

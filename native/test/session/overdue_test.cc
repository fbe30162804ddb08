// Clients that are stopped while a server READs their request, waits for memory for its answer, or sends
// that: what the call holds of the server's arena is taken back at its deadline, and without one after a time
// that is bounded, too. The session goes on as long as nothing of it is under way on the wire.
#include <gtest/gtest.h>

#include "session/sides/crowd.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

constexpr std::uint32_t kDeadlineExceeded = 4, kResourceExhausted = 8;
constexpr std::uint32_t kTimeoutUs = 5'000'000;
constexpr std::uint64_t kTimeoutNs = std::uint64_t{kTimeoutUs} * 1000;
constexpr std::uint64_t kTickNs = 2 * kHoldCheckNs;
constexpr std::size_t kBytes = 4 << 20;

/// The reader's own CPU writes what READs bring, as over tcp.
PairOptions by_cpu() {
  PairOptions options = Crowd::large_messages();
  options.sim.capabilities.reads_memory_late = true;
  return options;
}

struct Overdue : Crowd {
  explicit Overdue(const PairOptions& options = large_messages()) : Crowd(2, options) {}

  std::uint64_t held() const { return server.context->arena().counters().blocks_leased; }
  /// A call whose client is stopped when the server has begun to READ its request.
  void stop_reading(CallSpec spec) {
    spec.request_bytes = kBytes;
    spec.request_in_arena = true;
    id = start(0, spec);
    ASSERT_TRUE(until([&] { return server.context->flow().read_bytes() != 0; }));
    stop(0);
    ASSERT_EQ(held(), 1u);
  }
  /// A call whose client is stopped when the server has its request, and before it is asked for memory.
  void stop_asking(CallSpec spec) {
    spec.response_bytes = kBytes;
    spec.response_in_arena = true;
    spec.answer = Answer::later;
    id = start(0, spec);
    ASSERT_TRUE(until([&] { return server.unanswered() != 0; }));
    stop(0);
    ASSERT_TRUE(server.answer());
    let_pass(kTickNs);
    ASSERT_EQ(held(), 1u);
  }
  /// A call whose client is stopped when the server has begun to send its answer.
  void stop_writing(CallSpec spec) {
    spec.response_bytes = kBytes;
    spec.response_in_arena = true;
    spec.given_reply_buffer = kBytes;
    id = start(0, spec);
    ASSERT_TRUE(until([&] { return server.context->stats().bulk_writes != 0; }));
    stop(0);
    ASSERT_EQ(held(), 1u);
  }
  /// The client goes on: its call has ended with this status, and its session works.
  void expect_ends_with(std::uint32_t status) {
    resume(0);
    run();
    EXPECT_TRUE(ledger.at(id).answered());
    EXPECT_EQ(ledger.at(id).status, status);
    EXPECT_EQ(why_down(0), "");
    EXPECT_TRUE(works(0, {.request_bytes = kBytes, .response_bytes = kBytes}));
    EXPECT_EQ(finish(), Violations{});
  }
  void expect_down(const char* why) {
    run();
    EXPECT_NE(why_down(0).find(why), std::string::npos) << why_down(0);
    EXPECT_EQ(held(), 0u);
    EXPECT_EQ(why_down(1), "");
    EXPECT_TRUE(works(1, {.request_bytes = kBytes, .response_bytes = kBytes}));
    resume(0);
    EXPECT_EQ(finish(), Violations{});
  }
  std::uint64_t id = 0;
};

// --- requests that are READ

TEST(OverdueRequest, GivesItsMemoryBackAtItsDeadlineWhereACpuWritesThere) {
  RDMA_RPC_NEEDS_WINDOWS();  // with staging memory READs land elsewhere
  Overdue crowd(by_cpu());
  crowd.stop_reading({.timeout_us = kTimeoutUs});
  crowd.let_pass(kTimeoutNs - kTickNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.let_pass(2 * kTickNs);
  EXPECT_EQ(crowd.held(), 0u);
  crowd.expect_ends_with(kDeadlineExceeded);
}

/// What comes of the abandoned READs later is nobody's: the next request lies in the same memory.
TEST(OverdueRequest, LeavesTheMemoryToOthersForGood) {
  RDMA_RPC_NEEDS_WINDOWS();
  PairOptions options = by_cpu();
  options.context.arena.budget_bytes = 2 * kBytes;
  Overdue crowd(options);
  crowd.stop_reading({.timeout_us = kTimeoutUs});
  crowd.let_pass(kTimeoutNs + kTickNs);
  crowd.server.release_answers = false;  // it stays, and its bytes are looked at in the end
  EXPECT_TRUE(crowd.works(1, {.request_bytes = kBytes}));
  crowd.server.release_answers = true;
  crowd.resume(0);
  crowd.run();
  EXPECT_EQ(crowd.ledger.violations(false), Violations{});
  crowd.server.release_blocks();
  crowd.expect_ends_with(kDeadlineExceeded);
}

TEST(OverdueRequest, KeepsItsMemoryWhereADeviceMayStillWriteThere) {
  Overdue crowd;
  crowd.stop_reading({.timeout_us = kTimeoutUs});
  crowd.let_pass(kTimeoutNs + kTickNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.expect_ends_with(kDeadlineExceeded);
}

TEST(OverdueRequest, WithoutADeadlineEndsWithItsSession) {
  Overdue crowd;
  crowd.stop_reading({});
  crowd.let_pass(kBulkStillNs + kTickNs);
  crowd.expect_down("READ less than");
}

struct Limit {
  const char* name;
  std::uint32_t client_us;
  std::uint64_t default_us, max_us;
  std::uint64_t ends_ns;
};
void PrintTo(const Limit& limit, std::ostream* out) { *out << limit.name; }

class Limits : public testing::TestWithParam<Limit> {};
INSTANTIATE_TEST_SUITE_P(OverdueRequest, Limits,
                         testing::Values(Limit{"TheDefaultOfTheServer", 0, 2'000'000, 0, 2'000'000'000},
                                         Limit{"TheMostOfTheServer", 0, 3'000'000, 3'000'000, 3'000'000'000},
                                         Limit{"NoMoreThanTheMost", 9'000'000, 0, 4'000'000, 4'000'000'000},
                                         Limit{"NotTheDefaultWhereTheClientSaysMore", 5'000'000, 1'000'000, 0,
                                               5'000'000'000}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Limits, AreThoseOfTheServerWhereTheyComeFirst) {
  RDMA_RPC_NEEDS_WINDOWS();
  PairOptions options = by_cpu();
  options.timeout_default_us = GetParam().default_us;
  options.timeout_max_us = GetParam().max_us;
  Overdue crowd(options);
  crowd.stop_reading({.timeout_us = GetParam().client_us});
  crowd.let_pass(GetParam().ends_ns - kTickNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.let_pass(2 * kTickNs);
  EXPECT_EQ(crowd.held(), 0u);
  crowd.expect_ends_with(kDeadlineExceeded);
}

// --- answers

TEST(OverdueAnswer, ThatItsClientGrantsNoMemoryForEndsAtItsDeadline) {
  Overdue crowd;
  crowd.stop_asking({.timeout_us = kTimeoutUs});
  crowd.let_pass(kTimeoutNs - 2 * kTickNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.let_pass(3 * kTickNs);
  EXPECT_EQ(crowd.held(), 0u);
  crowd.expect_ends_with(kDeadlineExceeded);
}

TEST(OverdueAnswer, ThatItsClientGrantsNoMemoryForEndsInTheEndWithoutADeadline) {
  Overdue crowd;
  crowd.stop_asking({});
  crowd.let_pass(kReplyBufferWaitNs - 2 * kTickNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.let_pass(3 * kTickNs);
  EXPECT_EQ(crowd.held(), 0u);
  crowd.expect_ends_with(kResourceExhausted);
}

/// The reader of a stream may take its time while nobody else waits for memory (give_up_test.cc).
TEST(OverdueAnswer, OfAPartWaitsForItsReader) {
  Overdue crowd;
  crowd.stop_asking({.part = true});
  crowd.let_pass(2 * kReplyBufferWaitNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.expect_ends_with(0);
}

TEST(OverdueAnswer, ThatIsNotTakenEndsItsSession) {
  Overdue crowd;
  crowd.stop_writing({});
  crowd.let_pass(kBulkStillNs - kTickNs);
  EXPECT_EQ(crowd.why_down(0), "");
  crowd.let_pass(3 * kTickNs);
  crowd.expect_down("taken less than");
}

TEST(OverdueAnswer, ThatIsTakenInTheEndIsWhole) {
  Overdue crowd;
  crowd.stop_writing({});
  crowd.let_pass(kBulkStillNs - kTickNs);
  crowd.expect_ends_with(0);
}

TEST(OverdueAnswer, IsNotSentOnBehindItsDeadline) {
  Overdue crowd;
  crowd.stop_writing({.timeout_us = kTimeoutUs});
  crowd.let_pass(kTimeoutNs + kTickNs);
  const std::uint64_t written = crowd.server.context->stats().bulk_write_bytes;
  EXPECT_LT(written, kBytes);
  crowd.resume(0);
  crowd.run();
  EXPECT_EQ(crowd.server.context->stats().bulk_write_bytes, written);
  EXPECT_EQ(crowd.held(), 0u);
  crowd.expect_ends_with(kDeadlineExceeded);
}

/// The clock is that of the server's thread: one that was stopped itself finds first what has come.
TEST(OverdueAnswer, IsNotJudgedByTimeInWhichTheServerWasStopped) {
  Overdue crowd;
  crowd.stop_writing({});
  crowd.resume(0);
  crowd.world.advance(10 * kBulkStillNs);
  crowd.expect_ends_with(0);
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests clients that are stopped while a server reads their request, waits for memory for the response, or
// writes the response. The server frees the call's arena memory at the call's deadline; a call without a
// deadline loses the memory after a limited time. The session continues, unless READs or WRITEs of the call
// are in flight.
#include <gtest/gtest.h>

#include "session/sides/client_group.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

constexpr std::uint32_t kDeadlineExceeded = 4, kResourceExhausted = 8;
constexpr std::uint32_t kTimeoutUs = 5'000'000;
constexpr std::uint64_t kTimeoutNs = std::uint64_t{kTimeoutUs} * 1000;
constexpr std::uint64_t kTickNs = 2 * kHoldCheckNs;
constexpr std::size_t kBytes = 4 << 20;

/// Returns options of a fabric on which the CPU of the reader writes the bytes of READs, as on tcp.
PairOptions by_cpu() {
  PairOptions options = ClientGroup::large_messages();
  options.sim.capabilities.reads_memory_late = true;
  return options;
}

struct Overdue : ClientGroup {
  explicit Overdue(const PairOptions& options = large_messages()) : ClientGroup(2, options) {}

  std::uint64_t held() const { return server.context->arena().counters().blocks_leased; }
  /// Starts a call whose client is stopped when the server has begun to read its request.
  void stop_reading(CallSpec spec) {
    spec.request_bytes = kBytes;
    spec.request_in_arena = true;
    id = start(0, spec);
    ASSERT_TRUE(until([&] { return server.context->flow().read_bytes() != 0; }));
    stop(0);
    ASSERT_EQ(held(), 1u);
  }
  /// Starts a call whose client is stopped when the server has its request, before the server asks for
  /// memory.
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
  /// Starts a call whose client is stopped when the server has begun to write its response.
  void stop_writing(CallSpec spec) {
    spec.response_bytes = kBytes;
    spec.response_in_arena = true;
    spec.given_reply_buffer = kBytes;
    id = start(0, spec);
    ASSERT_TRUE(until([&] { return server.context->stats().bulk_writes != 0; }));
    stop(0);
    ASSERT_EQ(held(), 1u);
  }
  /// Lets the client continue, and expects that its call has ended with this status and that its session
  /// works.
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

// --- requests that are being read

TEST(OverdueRequest, GivesItsMemoryBackAtItsDeadlineWhereACpuWritesThere) {
  RDMA_RPC_NEEDS_WINDOWS();  // in staging mode READs go to staging memory
  Overdue group(by_cpu());
  group.stop_reading({.timeout_us = kTimeoutUs});
  group.let_pass(kTimeoutNs - kTickNs);
  EXPECT_EQ(group.held(), 1u);
  group.let_pass(2 * kTickNs);
  EXPECT_EQ(group.held(), 0u);
  group.expect_ends_with(kDeadlineExceeded);
}

/// Bytes of abandoned READs that arrive later must be discarded, because the next request uses the same
/// memory.
TEST(OverdueRequest, LeavesTheMemoryToOthersForGood) {
  RDMA_RPC_NEEDS_WINDOWS();
  PairOptions options = by_cpu();
  options.context.arena.budget_bytes = 2 * kBytes;
  Overdue group(options);
  group.stop_reading({.timeout_us = kTimeoutUs});
  group.let_pass(kTimeoutNs + kTickNs);
  group.server.release_answers = false;  // the request stays in memory, and its bytes are checked in the end
  EXPECT_TRUE(group.works(1, {.request_bytes = kBytes}));
  group.server.release_answers = true;
  group.resume(0);
  group.run();
  EXPECT_EQ(group.ledger.violations(false), Violations{});
  group.server.release_blocks();
  group.expect_ends_with(kDeadlineExceeded);
}

TEST(OverdueRequest, KeepsItsMemoryWhereADeviceMayStillWriteThere) {
  Overdue group;
  group.stop_reading({.timeout_us = kTimeoutUs});
  group.let_pass(kTimeoutNs + kTickNs);
  EXPECT_EQ(group.held(), 1u);
  group.expect_ends_with(kDeadlineExceeded);
}

TEST(OverdueRequest, WithoutADeadlineEndsWithItsSession) {
  Overdue group;
  group.stop_reading({});
  group.let_pass(kBulkStillNs + kTickNs);
  group.expect_down("read less than");
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
  Overdue group(options);
  group.stop_reading({.timeout_us = GetParam().client_us});
  group.let_pass(GetParam().ends_ns - kTickNs);
  EXPECT_EQ(group.held(), 1u);
  group.let_pass(2 * kTickNs);
  EXPECT_EQ(group.held(), 0u);
  group.expect_ends_with(kDeadlineExceeded);
}

// --- answers

TEST(OverdueAnswer, ThatItsClientGrantsNoMemoryForEndsAtItsDeadline) {
  Overdue group;
  group.stop_asking({.timeout_us = kTimeoutUs});
  group.let_pass(kTimeoutNs - 2 * kTickNs);
  EXPECT_EQ(group.held(), 1u);
  group.let_pass(3 * kTickNs);
  EXPECT_EQ(group.held(), 0u);
  group.expect_ends_with(kDeadlineExceeded);
}

TEST(OverdueAnswer, ThatItsClientGrantsNoMemoryForEndsInTheEndWithoutADeadline) {
  Overdue group;
  group.stop_asking({});
  group.let_pass(kReplyBufferWaitNs - 2 * kTickNs);
  EXPECT_EQ(group.held(), 1u);
  group.let_pass(3 * kTickNs);
  EXPECT_EQ(group.held(), 0u);
  group.expect_ends_with(kResourceExhausted);
}

/// The reader of a stream has no time limit while no other call waits for memory (reclaim_test.cc).
TEST(OverdueAnswer, OfAPartWaitsForItsReader) {
  Overdue group;
  group.stop_asking({.part = true});
  group.let_pass(2 * kReplyBufferWaitNs);
  EXPECT_EQ(group.held(), 1u);
  group.expect_ends_with(0);
}

TEST(OverdueAnswer, ThatIsNotAcceptedEndsItsSession) {
  Overdue group;
  group.stop_writing({});
  group.let_pass(kBulkStillNs - kTickNs);
  EXPECT_EQ(group.why_down(0), "");
  group.let_pass(3 * kTickNs);
  group.expect_down("accepted less than");
}

TEST(OverdueAnswer, ThatIsAcceptedInTheEndIsComplete) {
  Overdue group;
  group.stop_writing({});
  group.let_pass(kBulkStillNs - kTickNs);
  group.expect_ends_with(0);
}

TEST(OverdueAnswer, IsNotSentAfterItsDeadline) {
  Overdue group;
  group.stop_writing({.timeout_us = kTimeoutUs});
  group.let_pass(kTimeoutNs + kTickNs);
  const std::uint64_t written = group.server.context->stats().bulk_write_bytes;
  EXPECT_LT(written, kBytes);
  group.resume(0);
  group.run();
  EXPECT_EQ(group.server.context->stats().bulk_write_bytes, written);
  EXPECT_EQ(group.held(), 0u);
  group.expect_ends_with(kDeadlineExceeded);
}

/// Limits are measured while the server's thread runs. When the server itself was stopped, it first reads the
/// frames that have arrived.
TEST(OverdueAnswer, IsNotJudgedByTimeInWhichTheServerWasStopped) {
  Overdue group;
  group.stop_writing({});
  group.resume(0);
  group.world.advance(10 * kBulkStillNs);
  group.expect_ends_with(0);
}

}  // namespace
}  // namespace rdma_rpc::session::test

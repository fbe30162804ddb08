// Tests clients that are stopped in the middle of a large request. The READs of such clients delay other
// sessions only for some seconds, and in the end the stopped clients lose their sessions.
#include <gtest/gtest.h>

#include "session/sides/client_group.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

constexpr std::size_t kStopped = 6, kHonest = kStopped;
constexpr std::uint64_t kTickNs = 2 * kHoldCheckNs;

const CallSpec kLarge{.request_bytes = 12 << 20, .request_in_arena = true};

/// Clients that are stopped one after the other when the server has begun to read their requests, and a
/// client that is not stopped. Together the stopped clients use up the limit of READs in flight.
struct Stopped : ClientGroup {
  Stopped() : ClientGroup(kStopped + 1) {
    for (std::size_t i = 0; i < kStopped; ++i) {
      const std::uint64_t before = server.context->flow().read_bytes();
      ids.push_back(start(i, kLarge));
      EXPECT_TRUE(until([&] { return server.context->flow().read_bytes() > before; }));
      stop(i);
      for (int turns = 0; turns < 20; ++turns) server.turn(world.now_ns());  // posts as many READs as it may
    }
    EXPECT_GT(server.context->flow().read_bytes(), kReadBytesMax - kChunkBytes)
        << "the stopped clients leave room";
  }
  Violations finish() {
    for (std::size_t i = 0; i < kStopped; ++i) resume(i);
    return ClientGroup::finish();
  }
  std::vector<std::uint64_t> ids;
};

TEST(StoppedClients, DoNotKeepOthersFromSendingLargeRequests) {
  Stopped group;
  const std::uint64_t began = group.world.now_ns();
  for (const std::size_t bytes : {std::size_t{100} << 10, std::size_t{4} << 20})
    EXPECT_TRUE(group.works(kHonest, {.request_bytes = bytes, .request_in_arena = true})) << bytes;
  EXPECT_LT(group.world.now_ns() - began, kReadSlowNs)
      << "the call waited until the others' READs stopped counting";
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(StoppedClients, StopCountingForOthersAfterSomeSeconds) {
  Stopped group;
  group.let_pass(kReadSlowNs + kTickNs);
  EXPECT_EQ(group.server.context->flow().read_bytes(), 0u);
  const std::uint64_t id = group.start(kHonest, kLarge);
  std::uint64_t most = 0;
  EXPECT_TRUE(group.until([&] {
    most = std::max(most, group.server.context->flow().read_bytes());
    return group.ledger.at(id).ended();
  }));
  EXPECT_TRUE(group.ledger.at(id).answered());
  EXPECT_GE(most, kPostedBytesPerTurn) << "the session gets less than a single session does";
  EXPECT_EQ(group.finish(), Violations{});
}

/// Slow clients lose nothing, and later become as fast as others again.
TEST(StoppedClients, ContinueWhereTheyStopped) {
  Stopped group;
  group.let_pass(kBulkStillNs - kTickNs);
  for (std::size_t i = 0; i < kStopped; ++i) {
    EXPECT_EQ(group.why_down(i), "") << i;
    group.resume(i);
  }
  group.run();
  for (const std::uint64_t id : group.ids) EXPECT_TRUE(group.ledger.at(id).answered()) << id;
  EXPECT_EQ(group.server.context->flow().read_bytes(), 0u);
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(StoppedClients, AloneLoseTheirSessionsInTheEnd) {
  Stopped group;
  group.let_pass(kBulkStillNs + kTickNs);
  group.run();
  for (std::size_t i = 0; i < kStopped; ++i)
    EXPECT_NE(group.why_down(i).find("less than 1048576 bytes"), std::string::npos) << group.why_down(i);
  EXPECT_EQ(group.server.context->arena().counters().blocks_leased, 0u);
  EXPECT_EQ(group.server.context->flow().read_bytes(), 0u);
  EXPECT_TRUE(group.works(kHonest, kLarge));
  EXPECT_EQ(group.finish(), Violations{});
}

/// These limits are measured while the server's thread runs. When the server itself was stopped, it first
/// reads the frames that have arrived.
TEST(StoppedClients, AreNotJudgedByTimeInWhichTheServerWasStopped) {
  Stopped group;
  for (std::size_t i = 0; i < kStopped; ++i) group.resume(i);
  group.world.advance(10 * kBulkStillNs);
  group.run();
  for (const std::uint64_t id : group.ids) EXPECT_TRUE(group.ledger.at(id).answered()) << id;
  EXPECT_EQ(group.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

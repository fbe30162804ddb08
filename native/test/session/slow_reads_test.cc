// Clients that are stopped in the middle of a large request: the READs of it cost other sessions nothing for
// longer than some seconds, and in the end the session that they belong to.
#include <gtest/gtest.h>

#include "session/sides/crowd.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

constexpr std::size_t kStopped = 6, kHonest = kStopped;
constexpr std::uint64_t kTickNs = 2 * kHoldCheckNs;

const CallSpec kLarge{.request_bytes = 12 << 20, .request_in_arena = true};

/// Clients that are stopped one after the other when the server has begun to READ their requests, and one
/// that is not. Between them they have all READs that there may be.
struct Stopped : Crowd {
  Stopped() : Crowd(kStopped + 1) {
    for (std::size_t i = 0; i < kStopped; ++i) {
      const std::uint64_t before = server.context->flow().read_bytes();
      ids.push_back(start(i, kLarge));
      EXPECT_TRUE(until([&] { return server.context->flow().read_bytes() > before; }));
      stop(i);
      for (int turns = 0; turns < 20; ++turns)
        server.turn(world.now_ns());  // it asks for all that it may have
    }
    EXPECT_GT(server.context->flow().read_bytes(), kReadBytesMax - kChunkBytes) << "they leave room";
  }
  Violations finish() {
    for (std::size_t i = 0; i < kStopped; ++i) resume(i);
    return Crowd::finish();
  }
  std::vector<std::uint64_t> ids;
};

TEST(StoppedClients, KeepNobodyElseFromSendingLargeRequests) {
  Stopped crowd;
  const std::uint64_t began = crowd.world.now_ns();
  for (const std::size_t bytes : {std::size_t{100} << 10, std::size_t{4} << 20})
    EXPECT_TRUE(crowd.works(kHonest, {.request_bytes = bytes, .request_in_arena = true})) << bytes;
  EXPECT_LT(crowd.world.now_ns() - began, kReadSlowNs) << "it waited until they stopped counting";
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(StoppedClients, StopCountingForOthersAfterSomeSeconds) {
  Stopped crowd;
  crowd.let_pass(kReadSlowNs + kTickNs);
  EXPECT_EQ(crowd.server.context->flow().read_bytes(), 0u);
  const std::uint64_t id = crowd.start(kHonest, kLarge);
  std::uint64_t most = 0;
  EXPECT_TRUE(crowd.until([&] {
    most = std::max(most, crowd.server.context->flow().read_bytes());
    return crowd.ledger.at(id).ended();
  }));
  EXPECT_TRUE(crowd.ledger.at(id).answered());
  EXPECT_GE(most, kPostedBytesPerTurn) << "it has less than a lone session has";
  EXPECT_EQ(crowd.finish(), Violations{});
}

/// Nothing that they had is lost while they are only slow, and they are as fast as others again.
TEST(StoppedClients, GoOnWhereTheyWereWhenTheyCome) {
  Stopped crowd;
  crowd.let_pass(kBulkStillNs - kTickNs);
  for (std::size_t i = 0; i < kStopped; ++i) {
    EXPECT_EQ(crowd.why_down(i), "") << i;
    crowd.resume(i);
  }
  crowd.run();
  for (const std::uint64_t id : crowd.ids) EXPECT_TRUE(crowd.ledger.at(id).answered()) << id;
  EXPECT_EQ(crowd.server.context->flow().read_bytes(), 0u);
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(StoppedClients, LoseTheirSessionsInTheEndAndNobodyElseDoes) {
  Stopped crowd;
  crowd.let_pass(kBulkStillNs + kTickNs);
  crowd.run();
  for (std::size_t i = 0; i < kStopped; ++i)
    EXPECT_NE(crowd.why_down(i).find("less than 1048576 bytes"), std::string::npos) << crowd.why_down(i);
  EXPECT_EQ(crowd.server.context->arena().counters().blocks_leased, 0u);
  EXPECT_EQ(crowd.server.context->flow().read_bytes(), 0u);
  EXPECT_TRUE(crowd.works(kHonest, kLarge));
  EXPECT_EQ(crowd.finish(), Violations{});
}

/// The clock of these limits runs while the server's thread does: a server that was stopped itself finds the
/// answers first.
TEST(StoppedClients, AreNotJudgedByTimeInWhichTheServerWasStopped) {
  Stopped crowd;
  for (std::size_t i = 0; i < kStopped; ++i) crowd.resume(i);
  crowd.world.advance(10 * kBulkStillNs);
  crowd.run();
  for (const std::uint64_t id : crowd.ids) EXPECT_TRUE(crowd.ledger.at(id).answered()) << id;
  EXPECT_EQ(crowd.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests idle sessions: a turn visits only active sessions. The tests use the simulated fabric, and count
// visits instead of measuring time.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

/// A pair with this number of additional, idle sessions.
class IdleSessions : public testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr int kCalls = 50;

  explicit IdleSessions() : pair(immediate()) {
    PairOptions options;
    for (std::uint32_t i = 0; i < GetParam(); ++i) {
      auto& [client, server] = others.emplace_back();
      connect(pair.client, client, pair.server, server, options);
    }
    pair.run();
    looked_at_before = looked_at();
  }
  std::uint64_t looked_at() const {
    return pair.client.context->sessions_looked_at() + pair.server.context->sessions_looked_at();
  }
  std::vector<std::string> finish() {
    for (const auto& [client, server] : others) {
      pair.client.session(client).close("the test is over");
      pair.server.session(server).close("the test is over");
    }
    return pair.finish();
  }

  Pair pair;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> others;
  std::uint64_t looked_at_before = 0;
};

TEST_P(IdleSessions, AreNotLookedAtWhileAnotherIsActive) {
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_TRUE(pair.complete({}).answered());
    EXPECT_TRUE(pair.complete({.request_bytes = 5000, .response_bytes = 5000}).answered());
  }
  // A call takes some turns of each side, and each turn is one visit.
  EXPECT_LE(looked_at() - looked_at_before, std::uint64_t{kCalls} * 2 * 16);
  EXPECT_EQ(finish(), Violations{});
}

TEST_P(IdleSessions, AreNotLookedAtForATimeLimitOfAnother) {
  pair.hold_server(true);
  const std::uint64_t id = pair.start({.request_bytes = 5000});
  pair.step();
  pair.client.cancel(id);
  pair.run();
  pair.hold_server(false);
  pair.run();
  EXPECT_LE(looked_at() - looked_at_before, 200u);
  EXPECT_EQ(finish(), Violations{});
}

TEST_P(IdleSessions, AreNotLookedAtInTurnsThatFindNothing) {
  for (int i = 0; i < kCalls; ++i) {
    pair.client.turn(pair.world.now_ns());
    pair.server.turn(pair.world.now_ns());
  }
  EXPECT_EQ(looked_at(), looked_at_before);
  EXPECT_EQ(finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(, IdleSessions, testing::Values(0u, 1u, 100u));

TEST(ManySessions, ThatComeAndGoLeaveNothingInTheSets) {
  Pair pair(immediate());
  const PairOptions options;
  for (int i = 0; i < 100; ++i) {
    std::uint32_t client = 0, server = 0;
    connect(pair.client, client, pair.server, server, options);
    pair.run();
    pair.client.session(client).close("done");
    pair.server.session(server).close("done");
    pair.run();
  }
  // The sets use memory only for the few sessions that are open at one time, independent of the number of
  // earlier sessions.
  EXPECT_LE(pair.client.context->set_entries() + pair.server.context->set_entries(), 20u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ManySessions, ThereMayBeMoreThanFourThousand) {
  fabric::SimWorld world;
  std::string error;
  const auto context = Context::open(world.open_device(), {}, &error);
  ASSERT_NE(context, nullptr) << error;
  SessionOptions options;
  options.inflight_max = 1;
  for (std::uint32_t i = 0; i < 4'100; ++i) ASSERT_GE(context->create_session(options, &error), 0) << error;
  EXPECT_EQ(context->session_count(), 4'100u);
}

}  // namespace
}  // namespace rdma_rpc::session::test

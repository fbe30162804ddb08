// Tests connections that are established at once, after connect() has returned, or never. Calls may be
// submitted earlier, and no frame is sent too early.
#include <gtest/gtest.h>

#include <algorithm>

#include "seal/libcrypto.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
using Violations = std::vector<std::string>;

PairOptions late(PairOptions options = {}) {
  options.sim.connects_late = true;
  return options;
}

const CallSpec kKinds[] = {{},
                           {.request_bytes = 5000, .request_gather_entries = 3},
                           {.response_bytes = 5000},
                           {.request_bytes = 600, .response_bytes = 5000, .given_reply_buffer = 6000}};

TEST(Connecting, IsAnnouncedOnceBySessionUp) {
  for (const bool connects_late : {false, true}) {
    for (const fabric::SimMode mode : {fabric::SimMode::immediate, fabric::SimMode::scheduled}) {
      PairOptions options;
      options.sim.mode = mode;
      options.sim.connects_late = connects_late;
      Pair pair(options);
      EXPECT_EQ(pair.at_client().state(), connects_late ? SessionState::connecting : SessionState::ready);
      pair.run();
      EXPECT_TRUE(pair.client.is_up(pair.client_session));
      EXPECT_TRUE(pair.server.is_up(pair.server_session));
      EXPECT_TRUE(pair.complete({}).answered());
      EXPECT_EQ(pair.finish(), Violations{});  // a second SESSION_UP would be a violation
    }
  }
}

TEST(Connecting, CallsOfEveryKindWaitForIt) {
  for (const fabric::SimMode mode : {fabric::SimMode::immediate, fabric::SimMode::scheduled}) {
    PairOptions options = late();
    options.sim.mode = mode;
    Pair pair(options);
    std::vector<std::uint64_t> ids;
    for (const CallSpec& kind : kKinds) ids.push_back(pair.start(kind));
    pair.client.flush();
    pair.at_client().finish_turn();
    EXPECT_EQ(pair.at_client().state(), SessionState::connecting);
    EXPECT_EQ(pair.world.counters().of(fabric::Opcode::send), 0u);
    EXPECT_EQ(pair.world.counters().of(fabric::Opcode::bind_mw), 0u);
    pair.run();
    for (const std::uint64_t id : ids) EXPECT_TRUE(pair.call(id).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Connecting, WakesAThreadThatSleepsOnTheQueue) {
  Pair pair(late());
  EXPECT_TRUE(pair.client.context->cq().arm());
  while (pair.world.step()) {
  }
  EXPECT_FALSE(pair.client.context->cq().arm()) << "the next poll moves the connection on";
  pair.run();
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Connecting, ThatFailsEndsTheSessionWithTheReason) {
  for (const fabric::SimMode mode : {fabric::SimMode::immediate, fabric::SimMode::scheduled}) {
    PairOptions options = late();
    options.sim.mode = mode;
    Pair pair(options);
    pair.world.fail_connect("no answer within 5 s");
    std::vector<std::uint64_t> ids;
    for (const CallSpec& kind : kKinds) ids.push_back(pair.start(kind));
    pair.run();
    const std::string reasons[] = {pair.client.why_down(pair.client_session),
                                   pair.server.why_down(pair.server_session)};
    // When the attempt of one side fails, the attempt of the other side fails, too.
    EXPECT_TRUE(std::ranges::count(reasons, "cannot connect: sim: no answer within 5 s") == 1);
    EXPECT_TRUE(std::ranges::count(reasons, "cannot connect: sim: the peer has given the connection up") ==
                1);
    EXPECT_FALSE(pair.client.is_up(pair.client_session));
    EXPECT_FALSE(pair.server.is_up(pair.server_session));
    for (const std::uint64_t id : ids) {
      EXPECT_EQ(pair.call(id).kind, EvKind::failed);
      EXPECT_EQ(pair.call(id).reason, Reason::session_lost);
      EXPECT_EQ(pair.call(id).processed, Processed::no);
    }
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Connecting, CanBeAbortedAtEveryStep) {
  for (int steps = 0; steps < 8; ++steps) {
    for (const bool client : {false, true}) {
      SCOPED_TRACE(steps);
      Pair pair(late());
      const std::uint64_t id = pair.start({.request_bytes = 5000});
      for (int i = 0; i < steps; ++i) pair.step();
      (client ? pair.at_client() : pair.at_server()).close("enough");
      pair.run();
      EXPECT_EQ(pair.finish(), Violations{});
      EXPECT_TRUE(pair.call(id).ended());
    }
  }
}

TEST(Connecting, CallsCanBeCancelledMeanwhile) {
  Pair pair(late());
  std::vector<std::uint64_t> ids;
  for (const CallSpec& kind : kKinds) ids.push_back(pair.start(kind));
  for (const std::uint64_t id : ids) pair.client.cancel(id, Reason::deadline);
  pair.client.turn(pair.world.now_ns());
  for (const std::uint64_t id : ids) {
    EXPECT_EQ(pair.call(id).reason, Reason::deadline);
    EXPECT_EQ(pair.call(id).processed, Processed::no);
  }
  EXPECT_TRUE(pair.complete({}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Connecting, OfTwoHundredSessionsAtOnce) {
  PairOptions options = late();
  Pair pair(options);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sessions(200);
  for (auto& [client, server] : sessions) {
    connect(pair.client, client, pair.server, server, options);
    pair.client.start(client, {});  // until the send slots are used up
  }
  pair.run();
  for (const auto& [client, server] : sessions) {
    EXPECT_TRUE(pair.client.is_up(client));
    EXPECT_TRUE(pair.server.is_up(server));
    pair.client.session(client).close("over");
    pair.server.session(server).close("over");
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

/// On iWARP the passive side must not send first. The rule also applies to the credits for receives that the
/// passive side has posted.
TEST(Connecting, TheServerSendsNothingFirstWhereItMustNot) {
  PairOptions options;
  options.sim.capabilities.active_side_sends_first = true;
  options.inflight_max = 64;
  options.context.send_slots = 128;
  Pair pair(options);
  pair.run();
  EXPECT_EQ(pair.world.counters().of(fabric::Opcode::send), 0u);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 64; ++i) ids.push_back(pair.start({.response_bytes = i % 4 == 0 ? 4000u : 10u}));
  pair.run();
  for (const std::uint64_t id : ids) EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The server is the active side here. The client must not send the first request before the server has sent
/// a frame.
TEST(Connecting, AnActiveServerSendsFirstWhereItMust) {
  for (const bool connects_late : {false, true}) {
    for (const bool sends_first : {false, true}) {
      PairOptions options;
      options.server_is_active = true;
      options.sim.connects_late = connects_late;
      options.sim.capabilities.active_side_sends_first = sends_first;
      options.inflight_max = 64;
      options.context.send_slots = 128;
      Pair pair(options);
      std::vector<std::uint64_t> ids;
      for (const CallSpec& kind : kKinds) ids.push_back(pair.start(kind));
      pair.run();
      for (const std::uint64_t id : ids) EXPECT_TRUE(pair.call(id).answered());
      EXPECT_EQ(pair.finish(), Violations{});
    }
  }
}

TEST(Connecting, AnActiveServerServesCallsOfEveryKind) {
  if (seal::ciphers().empty()) GTEST_SKIP() << "not run: " << seal::why_no_cipher();
  PairOptions options;
  options.server_is_active = true;
  options.sealed = true;
  Pair pair(options);
  for (int round = 0; round < 50; ++round) {
    for (const CallSpec& kind : kKinds) EXPECT_TRUE(pair.complete(kind).answered());
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

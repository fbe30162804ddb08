// Tests sessions that share their receives: how many they use together, which session gets more and which
// gets fewer, and that no receive is lost. After each turn, every side checks that grants do not exceed the
// posted receives (Context::overdrawn()).
#include <gtest/gtest.h>

#include "seal/libcrypto.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

PairOptions sharing(std::uint32_t inflight_max) {
  PairOptions options = immediate();
  options.credit_pool = true;
  options.inflight_max = inflight_max;
  options.context.send_slots = 512;
  return options;
}

/// A pair with additional sessions between its sides.
struct SessionGroup {
  explicit SessionGroup(const PairOptions& options, std::uint32_t more) : pair(options) {
    for (std::uint32_t i = 0; i < more; ++i) {
      auto& [client, server] = others.emplace_back();
      connect(pair.client, client, pair.server, server, options);
    }
    pair.run();
  }
  void close_others() {
    for (const auto& [client, server] : others) {
      pair.client.session(client).close("the test is over");
      pair.server.session(server).close("the test is over");
    }
    others.clear();
  }
  const SharedReceives& at_server() const { return pair.server.context->shared_receives(); }
  std::uint64_t receives() const {
    return at_server().registered_bytes() / SendSlots::stride_for(PairOptions{}.context.slot_bytes);
  }

  Pair pair;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> others;
};

TEST(SharedReceives, OfManySessionsTakeLessThanAQuarterOfWhatTheirOwnWould) {
  constexpr std::uint32_t kSessions = 41, kInflight = 256;
  SessionGroup group(sharing(kInflight), kSessions - 1);
  EXPECT_LE(4 * group.receives(), std::uint64_t{kSessions} * (kInflight + kControlReceives + kOverflowSlots));
  // All sessions together want more credits than exist.
  for (int round = 0; round < 3; ++round) {
    for (const auto& [client, server] : group.others) {
      for (int i = 0; i < 12; ++i) ASSERT_NE(group.pair.client.start(client, {.answer = Answer::now}), 0u);
    }
    group.pair.client.flush();
    group.pair.run();
    EXPECT_EQ(group.pair.ledger.open(), 0u);
  }
  group.close_others();
  EXPECT_EQ(group.pair.finish(), Violations{});
}

TEST(SharedReceives, AreMoreForASessionThatIsBusyAndLessWhenItIsNot) {
  SessionGroup group(sharing(256), 3);
  Pair& pair = group.pair;
  EXPECT_EQ(pair.at_server().granted(), kCertainReceives);
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 200; ++i) ASSERT_NE(pair.start({}), 0u);
    pair.client.flush();
    pair.run();
  }
  EXPECT_GE(pair.at_server().granted(), 5 * kCertainReceives);
  EXPECT_EQ(pair.server.session(group.others[0].second).granted(), kCertainReceives);
  // The session now has only a few calls, so the credits that it uses are not replaced.
  for (int i = 0; i < 300; ++i) {
    pair.world.advance(2 * kCreditEpochNs);
    ASSERT_TRUE(pair.complete({}).answered());
  }
  EXPECT_EQ(pair.at_server().granted(), kCertainReceives);
  group.close_others();
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Large requests of one session hold their receives while they wait for memory, like those of a slow
/// handler. Other sessions are not affected.
TEST(SharedReceives, ThatOneSessionHoldsAreNotTakenFromOthers) {
  SessionGroup group(sharing(256), 4);
  Pair& pair = group.pair;
  const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
  for (int i = 0; i < 100; ++i) ASSERT_NE(pair.start({.request_bytes = 2000}), 0u);
  pair.run();
  EXPECT_GT(pair.server.context->memory_waiters(), 0u);
  for (const auto& [client, server] : group.others) {
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 60; ++i) ids.push_back(pair.client.start(client, {}));
    pair.client.flush();
    pair.run();
    for (const std::uint64_t id : ids) EXPECT_TRUE(pair.call(id).answered());
  }
  pair.server.context->arena().release(hog);
  pair.run();
  EXPECT_EQ(pair.ledger.open(), 0u);
  group.close_others();
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Requests of two sessions that waited for memory continue at the same time: each session has its metadata
/// in an overflow slot of its own.
TEST(SharedReceives, HaveOverflowSlotsOfTheirOwnInEachSession) {
  fabric::SimWorld world;
  const auto device = world.open_device();
  const auto cq = device->create_cq(1024);
  SharedReceives receives(*device, *cq, SendSlots::stride_for(PairOptions{}.context.slot_bytes));
  std::vector<SharedReceives::Member> members(3);
  const auto slots = [&](const SharedReceives::Member& member) {
    return std::pair(member.overflow, member.overflow + kOverflowSlots);
  };
  const auto apart = [&] {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    for (const auto& member : members)
      if (member.account.most != 0) all.push_back(slots(member));
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].first < receives.first_overflow_slot()) return false;
      if (i > 0 && all[i - 1].second > all[i].first) return false;
    }
    return true;
  };
  for (auto& member : members) ASSERT_TRUE(receives.join(member, 64));
  EXPECT_TRUE(apart());
  // In the second round, a new session uses the overflow slots of a session that has ended.
  for (std::size_t round = 0; round < 3 * members.size(); ++round) {
    auto& member = members[round % members.size()];
    receives.leave(member, static_cast<std::uint32_t>(round % members.size()));
    ASSERT_TRUE(receives.join(member, 64));
    EXPECT_TRUE(apart());
  }
  for (std::uint32_t i = 0; i < members.size(); ++i) receives.leave(members[i], i);
}

TEST(SharedReceives, OfSessionsThatEndAtAnyTimeAreAllPostedAgain) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PairOptions options = seeded(seed, sharing(64));
    options.sim.mode = fabric::SimMode::scheduled;
    options.sealed = seed % 4 == 0 && !seal::ciphers().empty();  // sealing_test reports when it does not run
    SessionGroup group(options, 3);
    for (const auto& [client, server] : group.others) {
      for (int i = 0; i < 40; ++i)
        group.pair.client.start(client, {.request_bytes = i % 5 == 0 ? 3000u : 20u, .answer = Answer::later});
    }
    group.pair.client.flush();
    for (std::uint64_t i = 0; i < seed * 7; ++i) group.pair.step();
    group.close_others();
    group.pair.run();
    EXPECT_EQ(group.at_server().posted(), group.receives());
    EXPECT_EQ(group.pair.client.context->shared_receives().posted(), group.receives());
    EXPECT_TRUE(group.pair.complete({}).answered());
    ASSERT_EQ(group.pair.finish(), Violations{});
  }
}

/// A shared queue of a device is expensive for a single session.
TEST(SharedReceives, AreNotForTheFirstSessionsOfAContext) {
  PairOptions options = sharing(64);
  options.context.shared_from = ContextOptions{}.shared_from;
  SessionGroup group(options, kSharedFrom);
  EXPECT_FALSE(group.pair.at_server().receives().shares());
  std::uint32_t sharing = 0;
  for (const auto& [client, server] : group.others)
    if (group.pair.server.session(server).receives().shares()) ++sharing;
  EXPECT_EQ(sharing, 1u);
  EXPECT_TRUE(group.pair.complete({}).answered());
  group.close_others();
  EXPECT_EQ(group.pair.finish(), Violations{});
}

/// Only one side has shared receives. The session works, and has as many credits as its own receives allow.
TEST(SharedReceives, MayBeRefusedOrMissingAndASessionHasItsOwn) {
  for (const bool missing : {false, true}) {
    PairOptions options = sharing(64);
    options.connect = false;
    if (missing) options.sim.capabilities.max_srq_wr = 0;
    Pair pair(options);
    if (!missing) pair.world.fail_nth(fabric::SimResource::receive_queue, 2);
    connect(pair.client, pair.client_session, pair.server, pair.server_session, options);
    pair.run();
    EXPECT_EQ(pair.at_client().receives().shares(), !missing);
    EXPECT_FALSE(pair.at_server().receives().shares());
    EXPECT_TRUE(pair.complete({}).answered());  // on iWARP the client must send first
    EXPECT_GE(pair.at_client().send_credits() + 1, 64 + kControlReceives)
        << "all credits except the one that the call has used";
    for (int i = 0; i < 64; ++i) ASSERT_NE(pair.start({}), 0u);
    pair.client.flush();
    pair.run();
    EXPECT_EQ(pair.ledger.open(), 0u);
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests that credits, receives and send slots of a session are used up on both sides, but never exceeded. In
// the end all of them are returned.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "session/hostile/scripted_peer.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Processed;
using Violations = std::vector<std::string>;

// --- credits

/// Both directions are full of small and bulk calls, with responses in any order and cancels at any time. RNR
/// retry is 0. Therefore a frame beyond the receives would break the session at once, and a lost credit would
/// stop it for ever.
TEST(Credits, NeitherRunOutNorOverrunForAnySeed) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    PairOptions options = seeded(seed, seed % 3 == 0 ? immediate() : PairOptions{});
    options.inflight_max = 1 + static_cast<std::uint32_t>(random() % 12);
    options.context.send_slots = 6 + static_cast<std::uint32_t>(random() % 20);
    Pair pair(options);
    std::uint32_t back = 0, back_server = 0;
    connect(pair.server, back, pair.client, back_server, options);
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 150; ++i) {
      for (Side* side : {&pair.client, &pair.server}) {
        const CallSpec spec{.request_bytes = random() % 3 == 0 ? random() % 4000 : random() % 60,
                            .request_gather_entries = 1 + random() % 3,
                            .response_bytes = random() % 4 == 0 ? random() % 6000 : random() % 60,
                            .answer = random() % 2 == 0 ? Answer::later : Answer::now,
                            .method = 1 + static_cast<std::uint32_t>(random() % 4)};
        const std::uint64_t id = side->start(side == &pair.client ? pair.client_session : back, spec);
        if (id != 0) ids.push_back(id);
        if (!ids.empty() && random() % 4 == 0) side->cancel(ids[random() % ids.size()]);
        if (side->unanswered() != 0 && random() % 2 == 0) side->answer(random() % side->unanswered());
      }
      for (std::uint64_t steps = random() % 6; steps > 0; --steps) pair.step();
    }
    for (int round = 0; round < 400 && pair.ledger.open() != 0; ++round) {
      pair.run();
      while (pair.server.answer()) {
      }
      while (pair.client.answer()) {
      }
    }
    EXPECT_EQ(pair.ledger.open(), 0u);
    EXPECT_EQ(pair.at_client().error(), "");
    EXPECT_EQ(pair.server.session(back).error(), "");
    pair.server.session(back).close("over");
    pair.client.session(back_server).close("over");
    ASSERT_EQ(pair.finish(), Violations{});
  }
}

/// Streams open more calls than there are receives, so calls queue for credits. All of them end, for any
/// seed, even when they are held, cancelled or answered late.
TEST(Credits, CarryMoreCallsThanReceives) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    PairOptions options = seeded(seed, seed % 3 == 0 ? immediate() : PairOptions{});
    options.inflight_max = 1 + static_cast<std::uint32_t>(random() % 6);
    options.call_slots = options.inflight_max + 4 * (1 + static_cast<std::uint32_t>(random() % 16));
    options.context.send_slots = 6 + static_cast<std::uint32_t>(random() % 100);
    if (seed % 2 == 0) options.context.arena.budget_bytes = 512 << 10;
    Pair pair(options);
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t id =
          pair.start({.request_bytes = random() % 3 == 0 ? random() % 9000 : random() % 60,
                      .response_bytes = random() % 4 == 0 ? random() % 9000 : random() % 60,
                      .answer = random() % 4 == 0 ? Answer::now : Answer::later,
                      .method = 1 + static_cast<std::uint32_t>(random() % 4),
                      .part = random() % 2 == 0});
      if (id != 0) ids.push_back(id);
      if (!ids.empty() && random() % 8 == 0) pair.client.cancel(ids[random() % ids.size()]);
      if (pair.server.unanswered() != 0 && random() % 3 == 0) {
        pair.server.answer(random() % pair.server.unanswered());
      }
      for (std::uint64_t steps = random() % 3; steps > 0; --steps) pair.step();
    }
    for (int round = 0; round < 400 && pair.ledger.open() != 0; ++round) {
      pair.run();
      while (pair.server.answer()) {
      }
    }
    EXPECT_EQ(pair.ledger.open(), 0u);
    EXPECT_EQ(pair.at_client().error(), "");
    ASSERT_EQ(pair.finish(), Violations{});
  }
}

TEST(Credits, CarryAsManyCallsAsThereAreSlots) {
  PairOptions options = immediate();
  options.inflight_max = 2;
  options.call_slots = 300;
  options.context.send_slots = 512;
  Pair pair(options);
  for (std::uint32_t i = 0; i < options.call_slots; ++i) {
    ASSERT_NE(pair.start({.answer = Answer::later, .part = true}), 0u);
  }
  EXPECT_EQ(pair.start({}), 0u);
  pair.run();
  EXPECT_EQ(pair.server.unanswered(), options.call_slots);
  while (pair.server.answer()) {
  }
  pair.run();
  EXPECT_EQ(pair.ledger.open(), 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Credits, ForWhichManyCallsWaitAfterALongSleepAreNotOverdue) {
  PairOptions options = immediate();
  options.inflight_max = 2;
  options.call_slots = 64;
  options.context.send_slots = 128;
  Pair pair(options);
  EXPECT_TRUE(pair.complete({}).answered());
  pair.world.advance(2 * kNoCreditNs);  // the side has no turn in this time
  for (std::uint32_t i = 0; i < options.call_slots; ++i) ASSERT_NE(pair.start({.part = true}), 0u);
  pair.client.flush();
  pair.run();
  EXPECT_EQ(pair.ledger.open(), 0u);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Credits, ComeBackAlthoughMostReceivesAreHeld) {
  // Bulk requests hold their receives while they wait for arena memory. The credits of the other receives
  // must still be returned. In this test the other receives belong to small calls that are cancelled, and
  // that get no response which could return a credit.
  PairOptions options = immediate();
  options.inflight_max = 64;
  options.context.send_slots = 128;
  Pair pair(options);
  const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
  std::vector<std::uint64_t> waiting;
  for (int i = 0; i < 60; ++i) waiting.push_back(pair.start({.request_bytes = 2000}));
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 60u);
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t id = pair.start({.answer = Answer::later});
    ASSERT_NE(id, 0u);
    pair.step();
    pair.client.cancel(id);
    pair.step();
  }
  EXPECT_TRUE(pair.complete({}).answered());
  pair.server.context->arena().release(hog);
  pair.run();
  for (const std::uint64_t id : waiting) EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Credits, OfASilentPeerLetNoMoreThanItsReceivesOnTheWire) {
  Pair pair(immediate());
  const std::uint32_t session = pair.client.open({true, 24, 4 << 20, 4 << 20});
  ScriptedPeer peer(pair.world, 24, 1024);
  peer.connect(pair.client.session(session));
  std::vector<std::uint64_t> ids;
  std::size_t requests = 0, frames = 0;
  // Each call is cancelled at once and started again. This takes two frames per call, and the peer never
  // returns a credit.
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t id = pair.client.start(session, {});
    if (id == 0) break;
    ids.push_back(id);
    pair.client.cancel(id);
    pair.run();
  }
  while (const auto frame = peer.receive()) {
    ++frames;
    requests += frame->type() == wire::FrameType::request;
  }
  EXPECT_LE(frames, 24u + kControlReceives - kCreditFrameCredits);
  EXPECT_TRUE(peer.alive());
  // The result of a call that was never sent reports that the call was not sent.
  const auto unsent = static_cast<std::size_t>(std::count_if(
      ids.begin(), ids.end(), [&](std::uint64_t id) { return pair.call(id).processed == Processed::no; }));
  EXPECT_EQ(unsent + requests, ids.size());
  if (Session* open = pair.client.context->find(session)) open->close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

/// A peer returns no credits. Three reserves then apply. Data frames leave the credits of control frames.
/// CANCELs for which a caller waits have reserved credits. Control frames leave the last credit to CREDIT
/// frames. The test checks the exact number of frames.
TEST(Credits, OfEachKindOfFrameAreUsedUpToTheReserveOfTheNext) {
  constexpr std::uint32_t kInflight = 40;
  constexpr std::uint32_t kCredits = kInflight + kControlReceives;
  const auto count = [](ScriptedPeer& peer) {
    std::size_t frames = 0;
    while (peer.receive()) ++frames;
    return frames;
  };
  for (const std::size_t lent : {0u, 1u, 3u}) {
    SCOPED_TRACE(std::to_string(lent) + " calls whose buffers the peer may read");
    if (lent != 0 && !has_windows()) continue;
    PairOptions options = immediate();
    options.context.send_slots = 512;
    Pair pair(options);
    const std::uint32_t session = pair.client.open({true, kInflight, 4 << 20, 4 << 20, 16 << 20, 256});
    ScriptedPeer peer(pair.world, kInflight, 1024);
    peer.connect(pair.client.session(session));
    std::vector<std::uint64_t> exposed, small;
    for (std::size_t i = 0; i < lent; ++i) {
      exposed.push_back(pair.client.start(session, {.request_bytes = 2000}));
    }
    for (int i = 0; i < 200; ++i) small.push_back(pair.client.start(session, {.part = true}));
    pair.run();
    const std::size_t data = count(peer);
    EXPECT_EQ(data, kCredits - kControlCredits - lent);
    for (std::size_t i = 0; i < small.size() && i < data - lent; ++i) pair.client.cancel(small[i]);
    pair.run();
    EXPECT_EQ(count(peer), kControlCredits - kCreditFrameCredits);
    for (const std::uint64_t id : exposed) pair.client.cancel(id);
    pair.run();
    EXPECT_EQ(count(peer), lent);
    EXPECT_TRUE(peer.alive());
    pair.client.session(session).close("over");
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Credits, CallsThatWaitForThemCanBeRemoved) {
  PairOptions options = immediate();
  options.inflight_max = 64;
  options.context.send_slots = 128;
  Pair pair(options);
  const std::uint32_t session = pair.client.open({true, 64, 4 << 20, 4 << 20});
  ScriptedPeer peer(pair.world, 64, 1024);
  peer.connect(pair.client.session(session));
  std::vector<std::uint64_t> late;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 64; ++i) {
      const std::uint64_t id = pair.client.start(session, {.request_bytes = i % 2 == 0 ? 20u : 2000u});
      if (round == 1 && id != 0) late.push_back(id);
    }
    pair.run();
    for (std::uint64_t id = 1; round == 0 && id <= 64; id += 2) pair.client.cancel(id);
    pair.run();
  }
  ASSERT_FALSE(late.empty());
  const std::uint64_t last = late.back();
  EXPECT_FALSE(pair.call(last).ended());
  pair.client.cancel(last);
  pair.run();
  EXPECT_EQ(pair.call(last).processed, Processed::no);
  pair.client.session(session).close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- send slots

TEST(SendSlots, RunOutAndComeBackWithOneEvent) {
  PairOptions options = immediate();
  options.inflight_max = 16;
  options.context.send_slots = 4;
  Pair pair(options);
  std::size_t started = 0;
  while (pair.start({.request_bytes = 600}) != 0) ++started;
  EXPECT_EQ(started, 4u);
  pair.run();
  EXPECT_EQ(pair.client.slots_free_events, 1);
  EXPECT_EQ(pair.client.free_slots(), 4u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(SendSlots, AreNotNeededToRefuseOrConfirmACancel) {
  PairOptions options = immediate();
  options.context.send_slots = 4;
  Pair pair(options);
  const std::uint64_t id =
      pair.start({.request_bytes = 10, .given_reply_buffer = 4096, .answer = Answer::later});
  pair.run();
  // The test holds all slots, as JS would.
  std::int32_t& free = pair.server.context->control()[boundary::ctl::free_slots];
  const std::int32_t kept = std::exchange(free, 0);
  pair.client.cancel(id);
  pair.run();
  EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.call(id).status, 1u);
  free = kept;
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Responses for a stopped client wait for credits, and each response holds a send slot.
TEST(SendSlots, AreNotAllTakenByASessionWhosePeerAcceptsNothing) {
  PairOptions options = immediate();
  options.inflight_max = 32;
  options.call_slots = 64;
  options.context.send_slots = 64;
  Pair pair(options);
  std::uint32_t second = 0, second_server = 0;
  connect(pair.client, second, pair.server, second_server, options);
  pair.run();
  SendSlots& slots = pair.server.context->slots();
  const std::uint32_t index = pair.server_session & (kSessionsMax - 1);
  const std::uint32_t other = second_server & (kSessionsMax - 1);
  std::vector<std::uint32_t> held;
  while (slots.within_share(index)) {
    held.push_back(static_cast<std::uint32_t>(slots.take()));
    slots.hold(held.back(), index);
  }
  EXPECT_GT(slots.free(), 64u / (1 + kSlotShare) - 2);
  EXPECT_TRUE(slots.within_share(other));
  // When JS waits for the first session, it is notified of free slots only when that session may have one.
  std::int32_t* words = pair.server.context->session_slots();
  std::int32_t* control = pair.server.context->control();
  words[index * boundary::slots::words + boundary::slots::wanted] = 1;
  control[boundary::ctl::want_slots] = 1;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pair.complete({}).answered());
  EXPECT_EQ(pair.server.slots_free_events, 0);
  for (const std::uint32_t slot : held) slots.release(slot);
  EXPECT_TRUE(pair.complete({}).answered());
  EXPECT_EQ(pair.server.slots_free_events, 1);
  EXPECT_EQ(words[index * boundary::slots::words + boundary::slots::wanted], 0);
  EXPECT_EQ(words[index * boundary::slots::words + boundary::slots::held], 0);
  pair.client.session(second).close("over");
  pair.server.session(second_server).close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- a peer that stalls

TEST(Stalls, OfTheServerCostACancelledCallItsGraceAndNothingElse) {
  for (const bool reply_buffer : {false, true}) {
    SCOPED_TRACE(reply_buffer);
    Pair pair;
    const std::uint64_t id = pair.start(
        {.request_bytes = 2000, .given_reply_buffer = reply_buffer ? 4096u : 0u, .answer = Answer::later});
    const std::uint64_t other = pair.start({.answer = Answer::later});
    pair.run();
    pair.client.cancel(id);
    // The event loop of the server hangs for longer than the grace period, while the event loop of the client
    // continues.
    for (int i = 0; i < 40; ++i) {
      pair.world.advance(5'000'000);
      for (int turns = 0; turns < 3; ++turns) pair.client.turn(pair.world.now_ns());
    }
    EXPECT_TRUE(pair.call(id).ended());
    EXPECT_EQ(pair.call(id).kind, EvKind::failed);
    EXPECT_EQ(pair.call(id).processed, Processed::maybe);
    pair.run();
    while (pair.server.answer()) {
    }
    pair.run();
    EXPECT_TRUE(pair.call(other).answered());
    EXPECT_EQ(pair.client.context->stats().late_responses, 1u);
    EXPECT_TRUE(pair.complete({.request_bytes = 2000, .response_bytes = 2000}).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

}  // namespace
}  // namespace rdma_rpc::session::test

// The windows of a session (credits, receives, send slots, send queue) and the limits of its context (arena,
// registrations, memory windows): full on both sides, refused at every step, and always back where they
// began.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "session/pair.h"
#include "session/scripted_peer.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Reason;
using boundary::Sent;
using Violations = std::vector<std::string>;

// --- credits
// -------------------------------------------------------------------------------------------------------

/// Both directions full of small and bulk calls, answers in any order, cancels at any time: RNR retry is 0,
/// so a frame beyond the receives would break the session at once, and a lost credit would stop it for ever.
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
                            .request_pieces = 1 + random() % 3,
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

TEST(Credits, ComeBackAlthoughMostReceivesAreHeld) {
  // Bulk requests hold their receives while they wait for arena memory. What is left must still go round:
  // here for small calls that are cancelled, which get no answer for a credit to ride on.
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
  // Cancelled at once and started again: two frames for each, and no credit ever comes back.
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
  // What was never sent says so.
  const auto unsent = static_cast<std::size_t>(std::count_if(
      ids.begin(), ids.end(), [&](std::uint64_t id) { return pair.call(id).sent == Sent::no; }));
  EXPECT_EQ(unsent + requests, ids.size());
  if (Session* open = pair.client.context->find(session)) open->close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Credits, CallsThatWaitForThemCanBeWithdrawn) {
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
  EXPECT_EQ(pair.call(last).sent, Sent::no);
  pair.client.session(session).close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- send slots
// ----------------------------------------------------------------------------------------------------

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
  const std::uint64_t id = pair.start({.request_bytes = 10, .given_sink = 4096, .answer = Answer::later});
  pair.run();
  // "JS" has them all in its hands.
  std::int32_t& free = pair.server.context->control()[boundary::ctl::free_slots];
  const std::int32_t kept = std::exchange(free, 0);
  pair.client.cancel(id);
  pair.run();
  EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.call(id).status, 1u);
  free = kept;
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- a peer that stalls
// --------------------------------------------------------------------------------------------

TEST(Stalls, OfTheServerCostACancelledCallItsGraceAndNothingElse) {
  for (const bool sink : {false, true}) {
    SCOPED_TRACE(sink);
    Pair pair;
    const std::uint64_t id =
        pair.start({.request_bytes = 2000, .given_sink = sink ? 4096u : 0u, .answer = Answer::later});
    const std::uint64_t other = pair.start({.answer = Answer::later});
    pair.run();
    pair.client.cancel(id);
    // Its event loop hangs, longer than the grace; the client's goes on.
    for (int i = 0; i < 40; ++i) {
      pair.world.advance(5'000'000);
      for (int turns = 0; turns < 3; ++turns) pair.client.turn(pair.world.now_ns());
    }
    EXPECT_TRUE(pair.call(id).ended());
    EXPECT_EQ(pair.call(id).kind, EvKind::failed);
    EXPECT_EQ(pair.call(id).sent, Sent::maybe);
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

// --- arena
// ---------------------------------------------------------------------------------------------------------

TEST(ArenaExhausted, RequestsWaitInOrderAndGoOn) {
  PairOptions options = immediate();
  options.inflight_max = 8;
  Pair pair(options);
  const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < 6; ++i)
    ids.push_back(pair.start({.request_bytes = 2000 + i, .answer = Answer::later}));
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 6u);
  pair.client.cancel(ids[2]);
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 5u);
  pair.server.context->arena().release(hog);
  pair.run();
  EXPECT_EQ(pair.server.unanswered(), 5u);
  for (const std::size_t i : {0u, 1u, 3u, 4u, 5u}) {
    ASSERT_TRUE(pair.server.answer());
    pair.run();
    EXPECT_TRUE(pair.call(ids[i]).answered()) << i;  // the first that waited is the first that ran
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ArenaExhausted, AnswersWaitForTheirSink) {
  Pair pair(immediate());
  const memory::BlockId hog = pair.client.context->arena().alloc(8 << 20);
  const std::uint64_t id = pair.start({.response_bytes = 5000}),
                      given_up = pair.start({.response_bytes = 6000});
  pair.run();
  EXPECT_EQ(pair.client.context->memory_waiters(), 2u);
  EXPECT_FALSE(pair.call(id).ended());
  // It has exposed nothing, so it ends at once.
  pair.client.cancel(given_up);
  pair.step();
  EXPECT_TRUE(pair.call(given_up).ended());
  pair.client.context->arena().release(hog);
  pair.run();
  EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ArenaExhausted, ClosingASessionTakesItsCallsOutOfTheLine) {
  Pair pair(immediate());
  const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
  for (int i = 0; i < 3; ++i) pair.start({.request_bytes = 2000});
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 3u);
  pair.at_server().close("over");
  EXPECT_EQ(pair.server.context->memory_waiters(), 0u);
  pair.server.context->arena().release(hog);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ArenaExhausted, ARequestThatCannotBeCopiedIsRefused) {
  PairOptions options = immediate();
  options.context.mr_cache.max_bytes = 0;  // so every buffer would have to be copied
  Pair pair(options);
  EXPECT_TRUE(pair.complete({.request_bytes = 2000}).answered());
  const memory::BlockId hog = pair.client.context->arena().alloc(7 << 20);
  const CallRecord& call = pair.complete({.request_bytes = 2 << 20});
  EXPECT_EQ(call.kind, EvKind::failed);
  EXPECT_EQ(call.reason, Reason::no_memory);
  EXPECT_EQ(call.sent, Sent::no);
  pair.client.context->arena().release(hog);
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- registrations and windows
// -------------------------------------------------------------------------------------

TEST(Registrations, RefusedMeansCopied) {
  for (const auto& [name, change] :
       {std::pair<const char*, void (*)(PairOptions&)>{
            "no entries", [](PairOptions& o) { o.context.mr_cache.max_entries = 0; }},
        {"memory that cannot be exposed",
         [](PairOptions& o) { o.sim.capabilities.exposes_any_memory = false; }}}) {
    SCOPED_TRACE(name);
    PairOptions options = immediate();
    change(options);
    Pair pair(options);
    EXPECT_TRUE(
        pair.complete({.request_bytes = 5000, .request_pieces = 3, .response_bytes = 5000}).answered());
    EXPECT_EQ(pair.client.context->mr_cache().counters().entries, 0u);
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Registrations, AtTheSystemsLimitEndInACopyOrARefusal) {
  PairOptions options = immediate();
  options.sim.registered_bytes_max = 256 << 10;  // as RLIMIT_MEMLOCK
  options.context.arena = {.budget_bytes = 8 << 20, .chunk_bytes = 64 << 10};
  Pair pair(options);
  EXPECT_TRUE(pair.complete({.request_bytes = 20'000, .response_bytes = 20'000}).answered());
  // Larger than anything that may be registered: a clear refusal, and the session goes on.
  const CallRecord& call = pair.complete({.request_bytes = 1 << 20});
  EXPECT_EQ(call.kind, EvKind::failed);
  EXPECT_EQ(call.reason, Reason::no_memory);
  EXPECT_TRUE(pair.complete({}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Windows, TheNthRefusedEndsThatCallOrItsSink) {
  for (std::uint64_t nth = 1; nth <= 5; ++nth) {
    for (const fabric::SimMode mode : {fabric::SimMode::immediate, fabric::SimMode::scheduled}) {
      SCOPED_TRACE(nth);
      PairOptions options;
      options.sim.mode = mode;
      Pair pair(options);
      pair.world.fail_nth(fabric::SimResource::window, nth);
      const CallRecord& call = pair.complete(
          {.request_bytes = 5000, .request_pieces = 3, .response_bytes = 5000, .given_sink = 5000});
      if (nth <= 3) {
        EXPECT_EQ(call.kind, EvKind::failed);
        EXPECT_EQ(call.reason, Reason::registration);
        EXPECT_EQ(call.sent, Sent::no);
      } else {
        EXPECT_TRUE(call.answered());  // the fourth is the sink's: the server asks for one
        EXPECT_EQ(pair.client.context->stats().sinks_asked, nth == 4 ? 1u : 0u);
      }
      EXPECT_TRUE(pair.complete({.request_bytes = 2000, .response_bytes = 2000}).answered());
      EXPECT_EQ(pair.finish(), Violations{});
    }
  }
}

TEST(Opening, FailsCleanlyAtEveryResource) {
  using fabric::SimResource;
  for (const SimResource resource : {SimResource::memory, SimResource::region, SimResource::queue_pair,
                                     SimResource::completion_queue, SimResource::window}) {
    for (std::uint64_t nth = 1; nth <= 4; ++nth) {
      fabric::SimWorld world({.mode = fabric::SimMode::immediate});
      const std::shared_ptr<fabric::Device> device = world.open_device("device");
      world.fail_nth(resource, nth);
      {
        std::string error;
        const auto context = Context::open(device, PairOptions{}.context, &error);
        const std::int64_t session =
            context == nullptr ? -1 : context->create_session({true, 4, 1 << 20, 1 << 20}, &error);
        EXPECT_EQ(session < 0, world.counters().faults != 0);
        EXPECT_EQ(session < 0, !error.empty());
      }
      const fabric::DeviceCounters left = device->counters();
      EXPECT_EQ(left.queue_pairs + left.memory_regions + left.memory_windows + left.open_fds, 0u);
    }
  }
}

TEST(Opening, SaysWhichLimitWasInTheWay) {
  struct {
    const char* text;
    void (*change)(fabric::SimOptions&, SessionOptions&);
  } const table[] = {
      {"inflightMax", [](fabric::SimOptions&, SessionOptions& s) { s.inflight_max = 0; }},
      {"inflightMax", [](fabric::SimOptions&, SessionOptions& s) { s.inflight_max = kInflightLimit + 1; }},
      {"memory windows", [](fabric::SimOptions& o, SessionOptions&) { o.capabilities.windows = false; }},
      {"inline", [](fabric::SimOptions& o, SessionOptions&) { o.capabilities.max_inline = 31; }},
      {"max_qp_wr", [](fabric::SimOptions& o, SessionOptions&) { o.capabilities.max_qp_wr = 511; }},
      {"registered_bytes_max",
       [](fabric::SimOptions& o, SessionOptions&) { o.registered_bytes_max = 40 << 10; }},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.text);
    fabric::SimOptions sim{.mode = fabric::SimMode::immediate};
    SessionOptions session{true, 8, 1 << 20, 1 << 20};
    row.change(sim, session);
    fabric::SimWorld world(sim);
    std::string error;
    const auto context = Context::open(world.open_device("device"), PairOptions{}.context, &error);
    ASSERT_NE(context, nullptr) << error;
    EXPECT_LT(context->create_session(session, &error), 0);
    EXPECT_NE(error.find(row.text), std::string::npos) << error;
    EXPECT_EQ(context->session_count(), 0u);
  }
}

TEST(Sessions, HaveNumbersThatAreNotSoonUsedAgain) {
  Pair pair(immediate());
  const std::uint32_t first = pair.client_session;
  pair.at_client().close("over");
  pair.at_server().close("over");
  pair.run();
  const std::uint32_t next = pair.client.open({true, 4, 1 << 20, 1 << 20});
  EXPECT_NE(next, first);
  EXPECT_EQ(pair.client.context->find(first), nullptr);
  pair.client.session(next).close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Sessions, OfTwoHundredConnectsAndClosesLeaveNothing) {
  Pair pair(immediate());
  const fabric::DeviceCounters before = pair.client.device->counters();
  for (int i = 0; i < 200; ++i) {
    std::uint32_t a = 0, b = 0;
    connect(pair.client, a, pair.server, b, immediate());
    pair.client.start(a, {.request_bytes = 2000, .response_bytes = 2000});
    if (i % 2 == 0) pair.run();
    pair.client.session(a).close("over");
    pair.run();
    if (Session* open = pair.server.context->find(b)) open->close("over");
    pair.run();
  }
  EXPECT_EQ(pair.client.device->counters().queue_pairs, before.queue_pairs);
  EXPECT_EQ(pair.client.context->session_count(), 1u);
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

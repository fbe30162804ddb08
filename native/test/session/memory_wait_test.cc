// Tests that calls that wait for arena memory hold nothing that other calls need, and end when they have
// waited too long. In all cases their session continues.
#include <gtest/gtest.h>

#include "seal/libcrypto.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Processed;
using Violations = std::vector<std::string>;

constexpr std::uint32_t kResourceExhausted = 8;
/// The time is longer than the clock advances while a pair runs until it is idle.
constexpr std::uint64_t kMargin = 30 * kMemoryCheckNs;

/// Advances the clock by `ns` in steps, with a turn of both sides after each step.
void pass(Pair& pair, std::uint64_t ns) {
  for (std::uint64_t passed = 0; passed < ns; passed += kMemoryCheckNs) {
    pair.world.advance(kMemoryCheckNs);
    pair.step();
  }
  for (int i = 0; i < 1000; ++i) pair.step();
}

struct ManyRequests {
  explicit ManyRequests(const PairOptions& options) : pair(options) {
    hog = pair.server.context->arena().alloc(8 << 20);
    for (int i = 0; i < 60; ++i) waiting.push_back(pair.start({.request_bytes = 2000}));
    pair.run();
  }
  static PairOptions options() {
    PairOptions options = immediate();
    options.inflight_max = 4;  // therefore the server has 20 receives
    options.call_slots = 64;
    options.context.send_slots = 128;
    return options;
  }
  Pair pair;
  memory::BlockId hog;
  std::vector<std::uint64_t> waiting;
};

TEST(MemoryWait, OfMoreRequestsThanReceivesLeavesRoomForOtherCalls) {
  ManyRequests many(ManyRequests::options());
  Pair& pair = many.pair;
  EXPECT_EQ(pair.server.context->memory_waiters(), 60u);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(pair.complete({.request_bytes = 20}).answered());
  pair.server.context->arena().release(many.hog);
  pair.run();
  for (const std::uint64_t id : many.waiting) EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(MemoryWait, OfRequestsEndsThemAfterItsLimitAndNotTheSession) {
  ManyRequests many(ManyRequests::options());
  Pair& pair = many.pair;
  pass(pair, kMemoryWaitNs - kMargin);
  EXPECT_EQ(pair.server.context->memory_waiters(), 60u);
  pass(pair, 2 * kMargin);
  EXPECT_EQ(pair.server.context->memory_waiters(), 0u);
  for (const std::uint64_t id : many.waiting) {
    EXPECT_EQ(pair.call(id).status, kResourceExhausted);
    EXPECT_EQ(pair.call(id).processed, Processed::no);
  }
  pair.server.context->arena().release(many.hog);
  EXPECT_TRUE(pair.complete({.request_bytes = 2000}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Submits texts of 100 bytes before and after a large value, which is sent in place unless the session is
/// sealed. Returns the number of bytes that the arena has refused, as the submission reports it.
std::int32_t asked_in_vain(PairOptions options) {
  Pair pair(options);
  const memory::BlockId hog = pair.client.context->arena().alloc(8 << 20);
  const std::uint64_t id = pair.start({.request_bytes = 60'200,
                                       .request_gather_entries = 3,
                                       .short_gather_entry_bytes = 100,
                                       .in_scratch = true});
  EXPECT_EQ(pair.call(id).reason, boundary::Reason::no_memory);
  const std::int32_t short_bytes = pair.client.context->control()[boundary::ctl::short_bytes];
  pair.client.context->arena().release(hog);
  EXPECT_EQ(pair.finish(), Violations{});
  return short_bytes;
}

TEST(MemoryWait, OfASubmissionSaysHowManyBytesWereRefused) { EXPECT_EQ(asked_in_vain(immediate()), 200); }

TEST(MemoryWait, OfASealedSubmissionSaysHowManyBytesWereRefused) {
  if (seal::ciphers().empty()) GTEST_SKIP() << "not run: " << seal::why_no_cipher();
  PairOptions options = immediate();
  options.sealed = true;
  EXPECT_GE(asked_in_vain(options), 60'200);
}

TEST(MemoryWait, OfAnAnswerEndsItAfterItsLimit) {
  Pair pair(immediate());
  const memory::BlockId hog = pair.client.context->arena().alloc(8 << 20);
  const std::uint64_t id = pair.start({.response_bytes = 5000});
  pair.run();
  pass(pair, kMemoryWaitNs - kMargin);
  EXPECT_FALSE(pair.call(id).ended());
  pass(pair, 2 * kMargin);
  EXPECT_EQ(pair.call(id).status, kResourceExhausted);
  EXPECT_EQ(pair.call(id).processed, Processed::yes);
  EXPECT_EQ(pair.call(id).refused_bytes, 0u);  // the cause is memory that the application keeps
  pair.client.context->arena().release(hog);
  EXPECT_TRUE(pair.complete({.response_bytes = 5000}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The response can never fit beside the request, so the call does not wait.
TEST(MemoryWait, IsRefusedAtOnceWhenTheRequestOfTheSameCallFillsTheArena) {
  RDMA_RPC_NEEDS_WINDOWS();  // in staging mode the request holds no arena memory
  PairOptions options = immediate();
  options.max_message_bytes = 8 << 20;
  Pair pair(options);
  const CallRecord& call =
      pair.complete({.request_bytes = 5 << 20, .request_in_arena = true, .response_bytes = 4 << 20});
  EXPECT_EQ(call.status, kResourceExhausted);
  EXPECT_EQ(call.processed, Processed::yes);
  EXPECT_GE(call.refused_bytes, 4u << 20);
  EXPECT_TRUE(pair.complete({.response_bytes = 5000}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The response would fit beside the request alone, but the application keeps other memory as well.
TEST(MemoryWait, OfAnAnswerNamesTheRequestOfTheSameCallWhenThatHoldsMostMemory) {
  RDMA_RPC_NEEDS_WINDOWS();
  PairOptions options = immediate();
  options.max_message_bytes = 8 << 20;
  Pair pair(options);
  const memory::BlockId kept = pair.client.context->arena().alloc(1 << 20);
  const std::uint64_t id =
      pair.start({.request_bytes = 5 << 20, .request_in_arena = true, .response_bytes = 3 << 20});
  pair.run();
  EXPECT_FALSE(pair.call(id).ended());
  pass(pair, kMemoryWaitNs + kMargin);
  EXPECT_EQ(pair.call(id).status, kResourceExhausted);
  EXPECT_GE(pair.call(id).refused_bytes, 3u << 20);
  pair.client.context->arena().release(kept);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(MemoryWait, DoesNotCountTimeInWhichTheThreadWasStopped) {
  ManyRequests many(ManyRequests::options());
  Pair& pair = many.pair;
  for (int i = 0; i < 50; ++i) {
    pair.world.advance(kMemoryWaitNs);
    pair.step();
  }
  EXPECT_EQ(pair.server.context->memory_waiters(), 60u);
  pair.server.context->arena().release(many.hog);
  pair.run();
  for (const std::uint64_t id : many.waiting) EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(MemoryWait, OfALargeRequestThatEndsLetsTheSmallerOnesBehindItGoOn) {
  Pair pair(immediate());
  memory::Arena& arena = pair.server.context->arena();
  memory::BlockId hog = arena.alloc(8 << 20);
  const std::uint64_t large = pair.start({.request_bytes = 4 << 20});
  pair.run();
  pass(pair, kMemoryWaitNs / 2);
  const std::uint64_t small = pair.start({.request_bytes = 2000});
  pair.run();
  arena.release(hog);
  hog = arena.alloc(6 << 20);
  pair.run();
  EXPECT_FALSE(pair.call(small).ended());
  pass(pair, kMemoryWaitNs / 2 + kMargin);
  EXPECT_EQ(pair.call(large).status, kResourceExhausted);
  EXPECT_TRUE(pair.call(small).answered());
  arena.release(hog);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(MemoryWait, OfALargeRequestIsNotPassedByASmallOneOfAnotherSession) {
  Pair pair(immediate());
  std::uint32_t second = 0, second_server = 0;
  connect(pair.client, second, pair.server, second_server, immediate());
  pair.run();
  memory::Arena& arena = pair.server.context->arena();
  memory::BlockId hog = arena.alloc(8 << 20);
  const std::uint64_t large = pair.start({.request_bytes = 4 << 20});
  pair.run();
  const std::uint64_t small = pair.client.start(second, {.request_bytes = 2000});
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 2u);
  // The memory is now enough for the small call, but not for the large call, which came first.
  arena.release(hog);
  hog = arena.alloc(6 << 20);
  pass(pair, kMemoryWaitNs / 2);
  EXPECT_FALSE(pair.call(small).ended());
  EXPECT_FALSE(pair.call(large).ended());
  arena.release(hog);
  pair.run();
  EXPECT_TRUE(pair.call(large).answered());
  EXPECT_TRUE(pair.call(small).answered());
  pair.client.session(second).close("over");
  pair.server.session(second_server).close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(MemoryWait, ThatEndsWithItsSessionIsRemovedFromTheQueue) {
  ManyRequests many(ManyRequests::options());
  Pair& pair = many.pair;
  pair.at_server().close("over");
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 0u);
  pass(pair, kMemoryWaitNs + kMargin);
  pair.server.context->arena().release(many.hog);
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- sessions beside each other

/// Two clients of one server. The server's application keeps all messages of the first client that it can
/// get, so the next messages of that client wait.
struct Neighbours {
  static constexpr std::size_t kGreedy = 8;
  Neighbours() : pair(options()), arena(pair.server.context->arena()) {
    connect(pair.client, second, pair.server, second_server, options());
    pair.run();
    const memory::OwnerId owner = pair.at_server().owner();
    for (memory::BlockId id; (id = arena.alloc(64 << 10, memory::Use::fetch, owner)) != memory::kNoBlock;) {
      kept.push_back(id);
    }
    for (std::size_t i = 0; i < kGreedy; ++i) greedy.push_back(pair.start({.request_bytes = 256 << 10}));
    pair.run();
    EXPECT_EQ(pair.server.context->memory_waiters(), kGreedy);
  }
  static PairOptions options() {
    PairOptions options = ManyRequests::options();
    options.context.mr_cache.max_bytes = 64 << 20;
    options.staging_bytes = 64 << 20;
    return options;
  }
  void end() {
    for (const memory::BlockId block : kept) arena.release(block);
    pair.run();
    for (const std::uint64_t id : greedy) EXPECT_TRUE(pair.call(id).answered());
    pair.client.session(second).close("over");
    pair.server.session(second_server).close("over");
    EXPECT_EQ(pair.finish(), Violations{});
  }
  Pair pair;
  memory::Arena& arena;
  std::uint32_t second = 0, second_server = 0;
  std::vector<memory::BlockId> kept;
  std::vector<std::uint64_t> greedy;
};

TEST(MemoryShares, OneSessionLeavesMemoryToAnother) {
  Neighbours both;
  const std::uint64_t id = both.pair.client.start(both.second, {.request_bytes = 512 << 10});
  both.pair.run();
  EXPECT_TRUE(both.pair.call(id).answered());
  both.end();
}

TEST(MemoryShares, ASessionBeyondItsShareDelaysNoOtherInTheQueue) {
  Neighbours both;
  std::vector<memory::BlockId> rest;
  for (memory::BlockId id; (id = both.arena.alloc(64 << 10, memory::Use::fetch)) != memory::kNoBlock;) {
    rest.push_back(id);
  }
  const std::uint64_t id = both.pair.client.start(both.second, {.request_bytes = 256 << 10});
  both.pair.run();
  EXPECT_FALSE(both.pair.call(id).ended());
  // The memory is now enough for the second session. The first session, whose call waited first, still
  // exceeds its share.
  for (const memory::BlockId block : rest) both.arena.release(block);
  both.pair.run();
  EXPECT_TRUE(both.pair.call(id).answered());
  EXPECT_EQ(both.pair.server.context->memory_waiters(), Neighbours::kGreedy);
  both.end();
}

// --- large messages of streams

constexpr std::size_t kLarge =
    512 << 10;  // the arena has 8 MiB, 1 MiB of it for messages ahead of their reader

TEST(MemoryWait, OfASessionThatHasItsQuotaEndsWithTheNameOfTheOption) {
  PairOptions options = immediate();
  options.arena_max_bytes = 64 << 10;
  Pair pair(options);
  const std::uint64_t too_large = pair.start({.request_bytes = 70'000});
  pair.run();
  EXPECT_EQ(pair.call(too_large).status, kResourceExhausted);
  // This allocates like a handler that keeps messages.
  memory::Arena& arena = pair.server.context->arena();
  const memory::BlockId kept = arena.alloc(64 << 10, memory::Use::fetch, pair.at_server().owner());
  const std::uint64_t waits = pair.start({.request_bytes = 2000});
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 1u);
  pass(pair, kMemoryWaitNs + kMargin);
  EXPECT_EQ(pair.call(waits).status, kResourceExhausted);
  EXPECT_EQ(pair.call(waits).processed, Processed::no);
  EXPECT_TRUE(pair.complete({.request_bytes = 20}).answered());
  arena.release(kept);
  EXPECT_TRUE(pair.complete({.request_bytes = 60'000}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Parts with large requests or responses that the application of the receiver never reads.
struct Stalled {
  explicit Stalled(bool requests) : pair(options()), receiver(requests ? pair.server : pair.client) {
    receiver.reads = false;
    for (int i = 0; i < 40; ++i) {
      CallSpec spec{.part = true};
      (requests ? spec.request_bytes : spec.response_bytes) = kLarge;
      ids.push_back(pair.start(spec));
      EXPECT_NE(ids.back(), 0u);
    }
    pair.run();
  }
  static PairOptions options() {
    PairOptions options = immediate();
    options.inflight_max = 4;
    options.call_slots = 64;
    options.context.send_slots = 128;
    options.context.mr_cache.max_bytes = 64 << 20;
    options.staging_bytes = 64 << 20;
    return options;
  }
  std::size_t leased() const { return receiver.context->arena().counters().bytes_leased; }
  Pair pair;
  Side& receiver;
  std::vector<std::uint64_t> ids;
};

TEST(StalledStreams, HoldASmallShareOfTheArenaAndDelayNoOthers) {
  for (const bool requests : {true, false}) {
    SCOPED_TRACE(requests);
    Stalled stalled(requests);
    Pair& pair = stalled.pair;
    EXPECT_GE(stalled.receiver.held_back.size(), 30u);
    EXPECT_LE(stalled.leased(), 1u << 20);
    EXPECT_EQ(stalled.receiver.context->memory_waiters(), 0u);
    pass(pair, 2 * kMemoryWaitNs);  // they have no time limit
    EXPECT_GE(stalled.receiver.held_back.size(), 30u);
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(pair.complete({.request_bytes = 20}).answered());
      EXPECT_TRUE(pair.complete({.request_bytes = 200'000, .response_bytes = 200'000}).answered());
    }
    for (const std::uint64_t id : stalled.ids) {
      if (pair.call(id).ended()) continue;
      stalled.receiver.want_parts();
      pair.run();
      EXPECT_TRUE(pair.call(id).answered());
    }
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(StalledStreams, ThatEndReleaseEverything) {
  for (const bool requests : {true, false}) {
    for (const bool closes : {true, false}) {
      SCOPED_TRACE(requests);
      Stalled stalled(requests);
      Pair& pair = stalled.pair;
      if (closes) {
        pair.at_server().close("over");
        pair.at_client().close("over");
      } else {
        for (const std::uint64_t id : stalled.ids) pair.client.cancel(id);
      }
      pair.run();
      std::size_t open = 0;
      for (const std::uint64_t id : stalled.ids) open += !pair.call(id).ended();
      EXPECT_EQ(open, 0u) << pair.client.why_down(pair.client_session)
                          << pair.server.why_down(pair.server_session);
      stalled.receiver.want_parts();  // too late, so it has no effect
      pair.run();
      if (!closes) {
        EXPECT_TRUE(pair.complete({.request_bytes = 1 << 20, .response_bytes = 1 << 20}).answered());
      }
      EXPECT_EQ(pair.finish(), Violations{});
    }
  }
}

}  // namespace
}  // namespace rdma_rpc::session::test

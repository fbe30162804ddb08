// The thread of one side is busy or stopped while calls of the other side are cancelled. Whatever those calls
// have exposed, the session and its other calls continue, and the callers are notified at once. No handler
// gets bytes that were written after its call was cancelled (the ledger overwrites them, see ledger.h), and
// the application gets its reply buffer back only when the peer can no longer write to it.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::Processed;
using boundary::Reason;
using Violations = std::vector<std::string>;

constexpr std::uint64_t kLongNs = 200'000'000;

/// Blocks the server's thread for longer than any timeout, while its device continues.
void server_is_busy(Pair& pair, std::uint64_t ns = kLongNs) { let_pass(pair.world, {&pair.client}, ns); }

void answer_all(Pair& pair) {
  pair.run();
  while (pair.server.answer()) {
  }
  pair.run();
}

struct Moment {
  const char* name;
  CallSpec spec;
  void (*until)(Pair& pair);  ///< runs the pair until the server's thread becomes busy
};
void PrintTo(const Moment& moment, std::ostream* out) { *out << moment.name; }

CallSpec later(CallSpec spec) {
  spec.answer = Answer::later;
  return spec;
}

/// Runs until the server has polled the request and posted its READs.
void reads_are_posted(Pair& pair) {
  for (int i = 0; i < 3; ++i) {
    pair.world.step();
    pair.client.turn(pair.world.now_ns());
  }
  pair.server.turn(pair.world.now_ns());
}
void nothing(Pair&) {}
void handler_runs(Pair& pair) { pair.run(); }
void handler_has_answered(Pair& pair) {
  pair.run();
  pair.server.answer(pair.server.unanswered() - 1);
}
void answer_is_posted(Pair& pair) {
  handler_has_answered(pair);
  pair.server.turn(pair.world.now_ns());
}
/// Runs until the client's REPLY_BUFFER is in the server's completion queue.
void reply_buffer_is_here(Pair& pair) {
  handler_has_answered(pair);
  pair.server.flush();
  let_pass(pair.world, {&pair.client}, 0);
  for (int i = 0; i < 20; ++i) {
    pair.world.step();
    pair.client.turn(pair.world.now_ns());
  }
}

class SlowServer : public testing::TestWithParam<Moment> {};

TEST_P(SlowServer, CostsACancelledCallOnlyItsAnswer) {
  const CallSpec& given = GetParam().spec;
  const std::uint64_t seeds = given.request_bytes + given.response_bytes < 100'000 ? 40 : 4;
  for (const bool next : {false, true}) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (next ? ", and the next call" : ""));
      Pair pair(seeded(seed));
      const std::uint64_t other = pair.start({.answer = Answer::later});
      pair.run();
      const std::uint64_t id = pair.start(GetParam().spec);
      pair.client.flush();
      GetParam().until(pair);
      pair.client.cancel(id, Reason::deadline);
      server_is_busy(pair);
      EXPECT_TRUE(pair.call(id).ended());
      if (!pair.call(id).answered()) {
        EXPECT_EQ(pair.call(id).reason, Reason::deadline);
      }
      const std::uint64_t after = next ? pair.start({.request_bytes = 5000}) : 0;
      pair.client.flush();
      server_is_busy(pair, 20'000'000);
      answer_all(pair);
      EXPECT_EQ(pair.server.why_down(pair.server_session), "");
      EXPECT_EQ(pair.client.why_down(pair.client_session), "");
      EXPECT_TRUE(pair.call(other).answered());
      if (next) {
        EXPECT_TRUE(pair.call(after).answered());
      }
      EXPECT_EQ(pair.client.context->stats().calls_pending_release, 0u);
      for (int i = 0; i < 4; ++i) EXPECT_TRUE(pair.complete({.request_bytes = 3000}).answered());
      EXPECT_EQ(pair.finish(), Violations{});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    BusyWith, SlowServer,
    testing::Values(
        Moment{"ARequestItHasNotSeen", {.request_bytes = 5000}, nothing},
        Moment{"ARequestInTheArena", {.request_bytes = 5000, .request_in_arena = true}, nothing},
        Moment{"ARequestOfManyChunks", {.request_bytes = 1'500'000, .request_gather_entries = 3}, nothing},
        Moment{"ReadsOnTheirWay", {.request_bytes = 5000, .timeout_us = 15'000}, reads_are_posted},
        Moment{"AHandler", later({.request_bytes = 5000, .given_reply_buffer = 8192}), handler_runs},
        Moment{"AnAnswerThatIsStaged", later({.response_bytes = 5000, .given_reply_buffer = 8192}),
               handler_has_answered},
        Moment{"ASmallAnswerThatIsStaged", later({.response_bytes = 10, .given_reply_buffer = 8192}),
               handler_has_answered},
        Moment{"WritesOnTheirWay", later({.response_bytes = 600'000, .given_reply_buffer = 600'000}),
               answer_is_posted},
        Moment{"WritesForManyTurns", later({.response_bytes = 4'000'000, .given_reply_buffer = 4'000'000}),
               answer_is_posted},
        Moment{"AReplyBufferThatItAskedFor", later({.response_bytes = 5000}), reply_buffer_is_here}),
    [](const auto& info) { return std::string(info.param.name); });

// --- CANCELs and staged responses

TEST(Cancel, StopsACallThatIsWriting) {
  Pair pair(immediate());
  const std::uint64_t id =
      pair.start({.response_bytes = 5000, .given_reply_buffer = 8192, .answer = Answer::later});
  pair.run();
  pair.server.answer();  // outside of a turn, so the next turn polls before it moves data
  pair.client.cancel(id);
  pair.run();
  EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.call(id).status, 1u);
  EXPECT_EQ(pair.server.context->stats().bulk_writes, 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Cancel, InTheQueueIsReadBeforeTheResponseOfJsIsMoved) {
  Pair pair(immediate());
  const std::uint64_t id =
      pair.start({.response_bytes = 5000, .given_reply_buffer = 8192, .answer = Answer::later});
  pair.run();
  pair.server.context->begin_callback();  // JS runs for long, and the CANCEL arrives during that time
  pair.client.cancel(id);
  pair.client.turn(pair.world.now_ns());
  pair.server.answer();
  pair.server.context->finish_turn();
  pair.run();
  EXPECT_EQ(pair.server.context->stats().bulk_writes, 0u);
  EXPECT_EQ(pair.call(id).status, 1u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Cancel, StopsALongAnswerHalfWay) {
  constexpr std::size_t kBytes = 3 * kPostedBytesPerTurn;
  PairOptions options = immediate();
  options.max_message_bytes = kBytes;
  options.staging_bytes = 2 * kBytes;
  options.context.arena.budget_bytes = 8 * kBytes;
  options.context.mr_cache.max_bytes = 8 * kBytes;
  Pair pair(options);
  const std::uint64_t id =
      pair.start({.response_bytes = kBytes, .given_reply_buffer = kBytes, .answer = Answer::later});
  pair.run();
  pair.server.answer();
  while (pair.server.context->stats().bulk_write_bytes == 0) pair.step();
  pair.client.cancel(id);
  pair.run();
  EXPECT_EQ(pair.call(id).status, 1u);
  EXPECT_GT(pair.server.context->stats().bulk_write_bytes, 0u);
  EXPECT_LT(pair.server.context->stats().bulk_write_bytes, kBytes);
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- pending release until the peer has answered

TEST(PendingRelease, CallersAreNotifiedAtOnceAndTheSlotFollows) {
  Pair pair;
  const std::uint64_t id = pair.start({.request_bytes = 2000, .answer = Answer::later});
  pair.run();
  pair.client.cancel(id, Reason::deadline);
  server_is_busy(pair, kSettleGraceNs + 5'000'000);
  EXPECT_TRUE(pair.call(id).ended());
  EXPECT_EQ(pair.call(id).processed, Processed::maybe);
  EXPECT_EQ(pair.call(id).held, boundary::pending_slot);
  EXPECT_EQ(pair.client.context->stats().calls_released_late, 1u);
  EXPECT_EQ(pair.client.context->stats().calls_pending_release, 1u);
  pair.run();
  EXPECT_FALSE(pair.call(id).holds());
  EXPECT_EQ(pair.client.context->stats().calls_pending_release, 0u);
  EXPECT_EQ(pair.client.context->stats().late_responses, 1u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(PendingRelease, AReplyBufferOfTheApplicationIsTakenAwayWhileThePeerMayWriteToIt) {
  Pair pair;
  const std::uint64_t id =
      pair.start({.response_bytes = 5000, .given_reply_buffer = 8192, .answer = Answer::later});
  pair.run();
  pair.client.cancel(id, Reason::deadline);
  server_is_busy(pair);
  EXPECT_TRUE(pair.call(id).ended());
  // In staging mode the peer has no key to the reply buffer.
  EXPECT_EQ(pair.call(id).held,
            boundary::pending_slot | (has_windows() ? boundary::pending_reply_buffer : 0));
  pair.run();
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(PendingRelease, NotWhenTheAnswerIsPromptAfterALongSleep) {
  Pair pair(immediate());
  const std::uint64_t id = pair.start({.request_bytes = 2000, .answer = Answer::later});
  pair.run();
  pair.world.advance(10'000'000'000);  // no turn runs in this time
  pair.client.context->set_time(pair.world.now_ns());
  pair.client.cancel(id, Reason::deadline);
  pair.client.turn(pair.world.now_ns());
  pair.run();
  EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.client.context->stats().calls_released_late, 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The response has arrived, but the windows are not invalid yet, for example because of a lost packet or a
/// busy kernel.
TEST(PendingRelease, WhileTheDeviceIsSlowToInvalidate) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair;
  const std::uint64_t id = pair.start({.request_bytes = 5000,
                                       .request_gather_entries = 2,
                                       .given_reply_buffer = 6000,
                                       .answer = Answer::later});
  pair.run();
  pair.server.answer();
  while (pair.world.counters().of(fabric::Opcode::send_with_inv) == 0) {
    pair.server.turn(pair.world.now_ns());
    pair.world.step();
  }
  pair.client.turn(pair.world.now_ns());  // posts the invalidations, which the device does not execute
  pair.world.stop(*pair.client.device);
  let_pass(pair.world, {&pair.client}, 50'000'000);
  EXPECT_FALSE(pair.call(id).ended());
  pair.client.cancel(id, Reason::deadline);
  let_pass(pair.world, {&pair.client}, 50'000'000);
  EXPECT_EQ(pair.call(id).reason, Reason::deadline);
  EXPECT_EQ(pair.call(id).processed, Processed::yes);
  EXPECT_TRUE(pair.call(id).holds());
  pair.world.resume(*pair.client.device);
  pair.run();
  EXPECT_FALSE(pair.call(id).holds());
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(PendingRelease, EndsWithTheSession) {
  Pair pair;
  const std::uint64_t id =
      pair.start({.request_bytes = 2000, .given_reply_buffer = 4096, .answer = Answer::later});
  pair.run();
  pair.client.cancel(id);
  server_is_busy(pair);
  EXPECT_TRUE(pair.call(id).holds());
  pair.at_client().close("enough");
  pair.run();
  EXPECT_FALSE(pair.call(id).holds());
  EXPECT_EQ(pair.client.context->stats().calls_pending_release, 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(PendingRelease, ForAMinuteCostsNothing) {
  Pair pair;
  const std::uint64_t other = pair.start({.answer = Answer::later});
  const std::uint64_t id =
      pair.start({.request_bytes = 2000, .given_reply_buffer = 4096, .answer = Answer::later});
  pair.run();
  pair.client.cancel(id, Reason::deadline);
  server_is_busy(pair, 60'000'000'000);
  answer_all(pair);
  EXPECT_TRUE(pair.call(other).answered());
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(PendingRelease, ByAPeerThatNeverAnswersEndsTheSessionAndNothingElse) {
  Pair pair;
  const std::uint64_t id =
      pair.start({.request_bytes = 2000, .given_reply_buffer = 4096, .answer = Answer::later});
  const std::uint64_t other = pair.start({.answer = Answer::later});
  pair.run();
  pair.client.cancel(id, Reason::deadline);
  server_is_busy(pair, kHoldLimitNs - 1'000'000'000);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  server_is_busy(pair, 3'000'000'000);
  pair.run();
  EXPECT_NE(pair.client.why_down(pair.client_session).find("has not confirmed the end of a call"),
            std::string::npos);
  EXPECT_EQ(pair.call(other).reason, Reason::session_lost);
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The client itself is stopped for longer than any limit. When it continues, it first reads what has
/// arrived.
TEST(PendingRelease, DoesNotCountTimeInWhichTheClientWasStopped) {
  Pair pair;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(pair.start({.request_bytes = 2000, .given_reply_buffer = 4096, .answer = Answer::later}));
  }
  pair.run();
  for (const std::uint64_t id : ids) pair.client.cancel(id, Reason::deadline);
  server_is_busy(pair);
  pair.world.advance(2 * kHoldLimitNs);
  pair.run();
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  for (const std::uint64_t id : ids) EXPECT_FALSE(pair.call(id).holds());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// A stopped server polls no frames, but the CANCELs of calls with memory of the application still reach its
/// receives.
TEST(PendingRelease, CallersDoNotWaitForCreditsThatOthersHaveUsedUp) {
  PairOptions options = immediate();
  options.inflight_max = 32;
  options.call_slots = 200;
  options.context.send_slots = 512;
  Pair pair(options);
  std::vector<std::uint64_t> large;
  for (int i = 0; i < 8; ++i) large.push_back(pair.start({.request_bytes = 2000, .answer = Answer::later}));
  pair.client.flush();
  server_is_busy(pair, 1'000'000);
  // More calls are started and cancelled until no frame can be sent any more.
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t id = pair.start({.answer = Answer::later, .part = true});
    ASSERT_NE(id, 0u);
    pair.client.flush();
    pair.client.cancel(id);
  }
  server_is_busy(pair, 1'000'000);
  for (const std::uint64_t id : large) pair.client.cancel(id, Reason::deadline);
  server_is_busy(pair);
  for (const std::uint64_t id : large) EXPECT_TRUE(pair.call(id).ended()) << id;
  answer_all(pair);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_TRUE(pair.complete({.request_bytes = 2000}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The test starts twice as many large calls as there are credits reserved for CANCELs. The calls without a
/// reserved credit are sent as copies, for which no caller waits.
TEST(PendingRelease, CallersDoNotWaitForACreditThatWasNotReservedForThem) {
  PairOptions options = immediate();
  options.inflight_max = 32;
  Pair pair(options);
  std::vector<std::uint64_t> large;
  for (int i = 0; i < 24; ++i) large.push_back(pair.start({.request_bytes = 2000, .answer = Answer::later}));
  pair.client.flush();
  server_is_busy(pair, 1'000'000);
  for (const std::uint64_t id : large) pair.client.cancel(id, Reason::deadline);
  server_is_busy(pair);
  for (const std::uint64_t id : large) EXPECT_TRUE(pair.call(id).ended()) << id;
  answer_all(pair);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_TRUE(pair.complete({.request_bytes = 2000}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- refusals

TEST(Refusals, NameNoKey) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair;
  const CallRecord& call = pair.complete({.request_bytes = 5000, .timeout_us = 1});
  EXPECT_EQ(call.status, 4u);
  EXPECT_EQ(call.processed, Processed::no);
  EXPECT_EQ(pair.world.counters().of(fabric::Opcode::send_with_inv), 0u);
  EXPECT_EQ(pair.world.counters().of(fabric::Opcode::local_inv), 1u);
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

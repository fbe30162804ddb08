// Tests a peer that polls nothing, and a network that delivers nothing. Calls that are cancelled then end
// soon after their deadline, independent of how much of them was sent, and their memory is reused only when
// it is safe.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::Processed;
using boundary::Reason;
using Violations = std::vector<std::string>;

/// Lets time pass in which the server does not poll.
void without_server(Pair& pair, std::uint64_t ns) { let_pass(pair.world, {&pair.client}, ns); }

void answer_all(Pair& pair) {
  pair.run();
  while (pair.server.answer()) {
  }
  pair.run();
}

/// A stopped server, and more large requests than it has receives. Requests that were sent are pending
/// release. Requests that wait for a credit were never sent. No caller waits for the server.
TEST(StoppedServer, MoreLargeRequestsThanCreditsEndAtOnceThoughTheServerIsStopped) {
  PairOptions options = immediate();
  options.inflight_max = 32;  // therefore there are 48 credits
  options.call_slots = 200;
  options.context.send_slots = 512;
  Pair pair(options);
  const std::uint64_t other = pair.start({.answer = Answer::later});
  pair.run();
  std::vector<std::uint64_t> large;
  for (int i = 0; i < 150; ++i) {
    const std::uint64_t id = pair.start({.request_bytes = 2000,
                                         .given_reply_buffer = i % 3 == 0 ? 4096u : 0u,
                                         .answer = Answer::later,
                                         .part = i % 2 == 0});
    ASSERT_NE(id, 0u) << i;
    large.push_back(id);
  }
  pair.client.flush();
  without_server(pair, 10'000'000'000);
  for (const std::uint64_t id : large) EXPECT_FALSE(pair.call(id).ended()) << id;
  for (const std::uint64_t id : large) pair.client.cancel(id, Reason::deadline);
  without_server(pair, kSettleGraceNs + 5'000'000);
  std::size_t unsent = 0;
  for (const std::uint64_t id : large) {
    EXPECT_EQ(pair.call(id).reason, Reason::deadline) << id;
    if (pair.call(id).ended() && pair.call(id).processed == Processed::no) ++unsent;
  }
  EXPECT_GE(unsent, large.size() - 48);
  EXPECT_LT(unsent, large.size());
  without_server(pair, 60'000'000'000);
  answer_all(pair);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_EQ(pair.client.context->stats().calls_pending_release, 0u);
  EXPECT_TRUE(pair.call(other).answered());
  EXPECT_TRUE(pair.complete({.request_bytes = 2000}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Other calls, whose memory the server may write, use all the credits that they may use for their CANCELs.
/// More of their CANCELs wait. Calls that have lent a request must still have a credit for their CANCEL.
TEST(StoppedServer, LentRequestsEndAtTheirDeadlineThoughManyOtherCallsHaveBeenCancelledBefore) {
  PairOptions options = immediate();
  options.inflight_max = 32;  // therefore there are 48 credits
  options.call_slots = 200;
  options.context.send_slots = 512;
  Pair pair(options);
  pair.run();
  const auto start = [&pair](int count, const CallSpec& spec) {
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back(pair.start(spec));
    pair.client.flush();
    without_server(pair, 1'000'000);  // the send queue gets room again, but no credits return
    return ids;
  };
  const auto cancel = [&pair](const std::vector<std::uint64_t>& ids) {
    for (const std::uint64_t id : ids) pair.client.cancel(id, Reason::deadline);
    without_server(pair, kSettleGraceNs + 5'000'000);
    for (const std::uint64_t id : ids) EXPECT_EQ(pair.call(id).reason, Reason::deadline) << id;
  };
  const auto lent = start(4, {.request_bytes = 2000, .answer = Answer::later});
  const auto large_answer = start(100, {.given_reply_buffer = 4096, .answer = Answer::later});
  const auto small = start(60, {.answer = Answer::later});
  cancel(large_answer);
  cancel(small);
  cancel(lent);
  answer_all(pair);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_EQ(pair.client.context->stats().calls_pending_release, 0u);
  EXPECT_TRUE(pair.complete({.request_bytes = 2000}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- a network that delivers nothing

/// Nothing that was sent is acknowledged. Callers that have not lent memory are notified of their deadline at
/// once. Callers that have lent a request are notified when the memory of the request is safe, which is at
/// the latest when the session ends.
TEST(StuckWire, EndsCallsSoonAfterTheirDeadline) {
  RDMA_RPC_NEEDS_WINDOWS();  // in staging mode no memory is lent
  Pair pair;
  const std::uint64_t lent = pair.start({.request_bytes = 2000, .answer = Answer::later});
  const std::uint64_t reply_buffer =
      pair.start({.response_bytes = 5000, .given_reply_buffer = 8192, .answer = Answer::later});
  const std::uint64_t small = pair.start({.answer = Answer::later});
  const std::uint64_t other = pair.start({.answer = Answer::later});
  pair.run();
  pair.world.stop(*pair.server.device);
  for (const std::uint64_t id : {lent, reply_buffer, small}) pair.client.cancel(id, Reason::deadline);
  without_server(pair, kSettleGraceNs + 5'000'000);
  EXPECT_EQ(pair.call(reply_buffer).reason, Reason::deadline);
  EXPECT_EQ(pair.call(small).reason, Reason::deadline);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_FALSE(pair.call(lent).ended());
  without_server(pair, kStuckWireNs + 2 * kHoldCheckNs);
  EXPECT_EQ(pair.call(lent).reason, Reason::deadline);
  EXPECT_NE(pair.client.why_down(pair.client_session).find("acknowledged nothing"), std::string::npos)
      << pair.client.why_down(pair.client_session);
  EXPECT_EQ(pair.call(other).reason, Reason::session_lost);
  pair.world.resume(*pair.server.device);
  pair.run();
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The peer has no key of calls that were never sent, but the windows of these calls stay valid until the
/// network works again.
TEST(StuckWire, EndsCallsThatWaitForACreditAtOnce) {
  RDMA_RPC_NEEDS_WINDOWS();
  PairOptions options;
  options.call_slots = 40;
  options.context.send_slots = 64;
  Pair pair(options);
  pair.run();
  pair.world.stop(*pair.server.device);
  std::vector<std::uint64_t> large;
  for (int i = 0; i < 40; ++i) {
    large.push_back(pair.start({.request_bytes = 2000, .answer = Answer::later}));
    ASSERT_NE(large.back(), 0u) << i;
  }
  pair.client.flush();
  for (const std::uint64_t id : large) pair.client.cancel(id, Reason::deadline);
  without_server(pair, kSettleGraceNs + 5'000'000);
  std::size_t unsent = 0;
  for (const std::uint64_t id : large) {
    if (pair.call(id).ended() && pair.call(id).processed == Processed::no) ++unsent;
  }
  EXPECT_GE(unsent, large.size() - 20);
  pair.world.resume(*pair.server.device);
  answer_all(pair);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  EXPECT_EQ(pair.client.context->stats().calls_pending_release, 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Where the client's own CPU serves READs, the CPU stops serving them. The caller does not wait for the
/// network, and the session does not end.
TEST(StuckWire, CostsNothingWhereReadsAreServedHere) {
  RDMA_RPC_NEEDS_WINDOWS();
  PairOptions options;
  options.sim.capabilities.reads_memory_late = true;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Pair pair(seeded(seed, options));
    const std::uint64_t other = pair.start({.answer = Answer::later});
    std::vector<std::uint64_t> lent;
    for (const std::size_t gather_entries : {std::size_t{1}, std::size_t{3}})
      lent.push_back(pair.start({.request_bytes = 700'000,
                                 .request_gather_entries = gather_entries,
                                 .given_reply_buffer = 4096,
                                 .answer = Answer::later}));
    for (std::uint64_t i = 0; i < seed; ++i) pair.step();
    pair.world.stop(*pair.server.device);
    for (const std::uint64_t id : lent) pair.client.cancel(id, Reason::deadline);
    without_server(pair, kSettleGraceNs + 5'000'000);
    for (const std::uint64_t id : lent) EXPECT_EQ(pair.call(id).reason, Reason::deadline);
    without_server(pair, 10 * kStuckWireNs);
    EXPECT_EQ(pair.client.why_down(pair.client_session), "");
    pair.world.resume(*pair.server.device);
    answer_all(pair);
    EXPECT_TRUE(pair.call(other).answered());
    EXPECT_EQ(pair.client.context->stats().calls_pending_release, 0u);
    EXPECT_TRUE(pair.complete({.request_bytes = 5000, .response_bytes = 5000}).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(StuckWire, ForAMomentCostsNothing) {
  Pair pair;
  const std::uint64_t lent = pair.start({.request_bytes = 2000, .answer = Answer::later});
  const std::uint64_t other = pair.start({.answer = Answer::later});
  pair.run();
  pair.world.stop(*pair.server.device);
  pair.client.cancel(lent, Reason::deadline);
  without_server(pair, kStuckWireNs / 2);
  EXPECT_EQ(pair.client.why_down(pair.client_session), "");
  pair.world.resume(*pair.server.device);
  answer_all(pair);
  EXPECT_TRUE(pair.call(other).answered());
  EXPECT_TRUE(pair.call(lent).ended());
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

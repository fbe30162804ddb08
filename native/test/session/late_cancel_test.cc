// Tests at which moment a caller is notified that its call has ended, so that it may write to the buffers of
// its request. The notification must come after the CANCEL has arrived at the server. The server must read
// the CANCEL before it delivers the request.
#include <gtest/gtest.h>

#include <memory>

#include "session/sides/pair.h"
#include "verbs/devices/hooked_device.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

constexpr std::uint64_t kLongNs = 2 * kSettleGraceNs;
constexpr std::uint64_t kStepNs = 1'000'000;
/// The simulation numbers queue pairs from 1, see connect().
constexpr std::uint32_t kServerQp = 2;

TEST(LateCancel, CallersAreNotNotifiedBeforeTheCancelHasArrived) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair;
  const std::uint64_t id = pair.start({.request_bytes = 5000, .answer = Answer::later});
  pair.run();
  pair.hold_client(true);  // holds the completion which shows that the CANCEL has arrived
  pair.client.cancel(id);
  let_pass(pair.world, {&pair.client}, kLongNs);
  EXPECT_FALSE(pair.call(id).ended());
  pair.hold_client(false);
  let_pass(pair.world, {&pair.client}, kLongNs);
  EXPECT_TRUE(pair.call(id).ended());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The completion of the last READ is polled first. The CANCEL arrived before that READ was executed, so the
/// READ has fetched bytes that the caller wrote later. Between the READ's completion and the CANCEL the queue
/// contains more frames than one poll returns.
TEST(LateCancel, IsReadBeforeTheRequestThatItEndsIsDelivered) {
  RDMA_RPC_NEEDS_WINDOWS();
  PairOptions options;
  options.inflight_max = 64;
  options.context.send_slots = 128;
  Ledger ledger;
  fabric::SimWorld world(options.sim);
  auto hooks = std::make_shared<Hooks>();
  hooks->sends_first = true;
  Side client(ledger, world.open_device("client"), options.context);
  Side server(ledger, std::make_shared<HookedDevice>(world.open_device("server"), hooks), options.context);
  std::uint32_t client_session = 0, server_session = 0;
  connect(client, client_session, server, server_session, options);

  const std::uint64_t id = client.start(client_session, {.request_bytes = 5000});
  client.flush();
  world.delay(kServerQp, 4 * kLongNs);
  for (int i = 0; i < 50; ++i) {  // the READs are posted but slow
    world.advance(1'000);
    client.turn(world.now_ns());
    server.turn(world.now_ns());
  }
  EXPECT_EQ(ledger.at(id).began, 0);
  for (std::uint32_t i = 0; i < kEventsMax + 8; ++i) client.start(client_session, {.answer = Answer::later});
  client.flush();
  client.cancel(id);
  let_pass(world, {&client}, 8 * kLongNs);
  EXPECT_TRUE(ledger.at(id).holds());
  for (int round = 0; round < 100 && ledger.open() != 0; ++round) {
    ASSERT_TRUE(run_world(world, {&client, &server}));
    while (server.answer()) {
    }
  }
  EXPECT_EQ(ledger.at(id).began, 0) << "the CANCEL had arrived";
  EXPECT_EQ(server.why_down(server_session), "");
  EXPECT_EQ(ledger.violations(), Violations{});
  client.session(client_session).close("over");
  ASSERT_TRUE(run_world(world, {&client, &server}));
}

/// The server answers a CANCEL with *not run* as long as the handler has not begun. After that CANCEL the
/// handler must not begin.
TEST(LateCancel, SaysWhetherADeferredHandlerHasBegun) {
  for (const bool begins : {false, true}) {
    SCOPED_TRACE(begins ? "it has begun" : "it has not begun");
    Pair pair;
    const std::uint64_t id = pair.start({.request_bytes = 5000, .answer = Answer::later});
    pair.run();
    ASSERT_EQ(pair.server.unanswered(), 1u);
    Session& session = pair.server.session(pair.server_session);
    const std::uint32_t call = pair.server.unanswered_call(0);
    ASSERT_TRUE(session.defer_handler(call, true));
    pair.call(id).began = 0;  // for the oracle, a request that JS has received is one that has begun
    if (begins) {
      ASSERT_TRUE(session.defer_handler(call, false));
      pair.call(id).began = 1;
    }
    pair.client.cancel(id);
    pair.run();
    EXPECT_EQ(pair.call(id).processed, begins ? boundary::Processed::yes : boundary::Processed::no);
    EXPECT_FALSE(session.defer_handler(call, false)) << "the call is over";
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

/// Memory that WRITEs in flight read stays registered, although their call is cancelled and another call
/// needs the only entry of the cache.
TEST(LateCancel, LeavesTheMemoryOfAnAnswerWhoseWritesAreUnderWay) {
  PairOptions options;
  options.max_message_bytes = 3 * kPostedBytesPerTurn;
  options.staging_bytes = (kStagingShare + 1) * options.max_message_bytes;
  options.context.arena.budget_bytes = 8 * options.max_message_bytes;
  options.context.mr_cache = {.max_bytes = 8 * options.max_message_bytes, .max_entries = 1};
  Pair pair(options);
  const std::size_t bytes = options.max_message_bytes;
  const std::uint64_t id =
      pair.start({.response_bytes = bytes, .given_reply_buffer = bytes, .answer = Answer::later});
  pair.run();
  pair.world.delay(kServerQp, kLongNs);
  pair.server.answer();
  pair.server.turn(pair.world.now_ns());
  ASSERT_GT(pair.server.context->stats().bulk_write_bytes, 0u);
  pair.client.cancel(id);
  const std::uint64_t next = pair.start({.response_bytes = 5000});
  for (int i = 0; i < 60; ++i) {  // both arrive long before the WRITEs complete
    pair.world.advance(1'000);
    pair.client.turn(pair.world.now_ns());
    if (i > 30) pair.server.turn(pair.world.now_ns());
  }
  EXPECT_EQ(pair.call(next).began, 1);
  pair.run();
  EXPECT_LT(pair.server.context->stats().bulk_write_bytes, bytes)
      << "the rest of the cancelled response must not be written";
  EXPECT_EQ(pair.server.why_down(pair.server_session), "");
  EXPECT_TRUE(pair.call(next).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Staging memory of a call that is pending release is not reused, because a late WRITE would damage another
/// call.
TEST(LateCancel, LeavesItsStagingMemoryToTheWritesThatMayStillCome) {
  if (has_windows()) GTEST_SKIP() << "not run: this device has memory windows";
  Pair pair;
  const std::uint64_t id =
      pair.start({.response_bytes = 4000, .given_reply_buffer = 4096, .answer = Answer::later});
  pair.run();
  pair.world.delay(kServerQp, 4 * kLongNs);
  pair.server.answer();
  pair.server.turn(pair.world.now_ns());
  pair.client.cancel(id);
  for (std::uint64_t passed = 0; passed < kLongNs;
       passed += kStepNs) {  // a step to the next event would go too far
    pair.world.advance(kStepNs);
    pair.client.turn(pair.world.now_ns());
  }
  EXPECT_TRUE(pair.call(id).holds());
  const std::uint64_t next = pair.start({.request_bytes = 4096});
  pair.run();
  EXPECT_TRUE(pair.call(next).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

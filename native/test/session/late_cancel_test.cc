// The moment at which a caller learns that its call has ended, and may write to the buffers of its request:
// not before the CANCEL lies with the server, and the server looks at that before it hands the request over.
#include <gtest/gtest.h>

#include <memory>

#include "session/pair.h"
#include "verbs/hooked_device.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

constexpr std::uint64_t kLongNs = 2 * kSettleGraceNs;

TEST(LateCancel, NobodyIsToldBeforeTheCancelHasArrived) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair;
  const std::uint64_t id = pair.start({.request_bytes = 5000, .answer = Answer::later});
  pair.run();
  pair.hold_client(true);  // what tells it that the CANCEL has arrived
  pair.client.cancel(id);
  let_pass(pair.world, {&pair.client}, kLongNs);
  EXPECT_FALSE(pair.call(id).ended());
  pair.hold_client(false);
  let_pass(pair.world, {&pair.client}, kLongNs);
  EXPECT_TRUE(pair.call(id).ended());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// More frames than one poll takes lie between the last READ, whose completion is polled first, and the
/// CANCEL, which was there before that READ found what the caller has written since.
TEST(LateCancel, IsSeenBeforeTheRequestThatItEndsIsHandedOver) {
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
  constexpr std::uint32_t kServerQp = 2;  // the simulation numbers them from 1

  const std::uint64_t id = client.start(client_session, {.request_bytes = 5000});
  client.flush();
  world.delay(kServerQp, 4 * kLongNs);
  for (int i = 0; i < 50; ++i) {  // the READs are posted, and take long
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
  EXPECT_EQ(ledger.at(id).began, 0) << "the CANCEL was there";
  EXPECT_EQ(server.why_down(server_session), "");
  EXPECT_EQ(ledger.violations(), Violations{});
  client.session(client_session).close("over");
  ASSERT_TRUE(run_world(world, {&client, &server}));
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests events that are polled after JS has run, while bulk data waits: at most as many as the next batch can
// hold. JS gets events in their order of arrival. With more events, a peer that has sent many frames would be
// served first.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

TEST(DrainedEvents, AreNoMoreThanTheNextBatchHolds) {
  constexpr std::uint32_t kCalls = 200;
  PairOptions options;
  options.inflight_max = 2 * kCalls;
  options.credit_pool = false;  // all calls may be sent at once
  options.context.send_slots = 2 * kCalls;
  options.context.read_bytes_max = 1;  // one READ at a time
  options.sim.read_extra_max_ns = std::uint64_t{1} << 50;
  Pair pair(options);
  const auto turn = [&](Side& side) {
    pair.world.advance(20'000);
    side.turn(pair.world.now_ns());
  };
  for (int i = 0; i < 20; ++i) {
    turn(pair.client);
    turn(pair.server);
  }
  // The request needs two READs: the second one waits until the first, slow one completes.
  ASSERT_NE(pair.start({.request_bytes = kChunkBytes + 1000}), 0u);
  for (int i = 0; i < 20; ++i) {
    turn(pair.client);
    turn(pair.server);
  }
  ASSERT_TRUE(pair.server.context->flow().waits());
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    ASSERT_NE(pair.start({.answer = Answer::later}), 0u);
    pair.client.flush();
    turn(pair.client);
  }
  pair.world.advance(1'000'000);
  for (std::uint32_t seen = 0; seen < kCalls;) {
    const std::uint64_t before = pair.server.context->stats().completions;
    pair.server.turn(pair.world.now_ns());
    const std::uint64_t taken = pair.server.context->stats().completions - before;
    EXPECT_LE(taken, std::uint64_t{2 * kEventsMax});
    ASSERT_NE(taken, 0u);
    seen += static_cast<std::uint32_t>(taken);
  }
  pair.abandon_client();
  pair.abandon_server();
}

}  // namespace
}  // namespace rdma_rpc::session::test

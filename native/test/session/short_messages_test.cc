// Tests short messages, which JS reads in a few buffers that all sessions of the context share. A session
// that keeps buffers for long, or ends while it has some, leaves enough to the others.
#include "session/short_messages.h"

#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

/// Returns options of a device whose received messages are copied.
PairOptions copying(std::uint32_t inflight) {
  PairOptions options;
  options.sim.capabilities.peers_keep_access = true;
  options.inflight_max = inflight;
  options.context.send_slots = 256;
  return options;
}

std::uint32_t taken(const Side& side) { return kShortMessages - side.context->short_messages_free(); }

TEST(ShortMessages, AnEntryIsFreeOnceJsHasReadIt) {
  Pair pair(copying(8));
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(pair.complete({.request_bytes = 20, .response_bytes = 20}).answered());
  EXPECT_EQ(pair.server.short_messages, 1000);
  EXPECT_EQ(pair.client.short_messages, 1000);
  EXPECT_EQ(taken(pair.server), 0u);
  EXPECT_EQ(taken(pair.client), 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ShortMessages, LongerOnesAreInTheSessionsOwnMemory) {
  Pair pair(copying(8));
  for (const std::size_t bytes : {0u, 1u, 200u, 201u, 232u, 233u, 256u, 257u, 900u, 5000u})
    EXPECT_TRUE(pair.complete({.request_bytes = bytes, .response_bytes = bytes}).answered()) << bytes;
  const int before = pair.server.short_messages;
  EXPECT_GT(before, 0);
  EXPECT_TRUE(pair.complete({.request_bytes = 900}).answered());
  EXPECT_EQ(pair.server.short_messages, before);
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Starts large requests until at least this number of the server's buffers are in use. Each request keeps a
/// buffer while it is being fetched.
void step_until_taken(Pair& pair, std::uint32_t entries) {
  for (int i = 0; i < 10'000 && taken(pair.server) < entries; ++i) pair.step();
  ASSERT_GE(taken(pair.server), entries);
}

TEST(ShortMessages, WhenAllAreTakenASessionUsesItsOwnMemory) {
  constexpr std::uint32_t kLarge = kShortMessages + 20;
  PairOptions options = copying(kLarge + 4);
  options.context.read_bytes_max = 1;  // one READ at a time
  Pair pair(options);
  std::vector<std::uint64_t> large;
  for (std::uint32_t i = 0; i < kLarge; ++i) large.push_back(pair.start({.request_bytes = 2000}));
  step_until_taken(pair, kShortMessages);
  const std::uint64_t small = pair.start({.request_bytes = 20, .response_bytes = 20});
  pair.run();
  for (const std::uint64_t id : large) EXPECT_TRUE(pair.call(id).answered());
  EXPECT_TRUE(pair.call(small).answered());
  EXPECT_EQ(taken(pair.server), 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ShortMessages, ASessionThatEndsReleasesItsEntries) {
  Pair pair(copying(8));
  for (int i = 0; i < 8; ++i) pair.start({.request_bytes = 2000});
  step_until_taken(pair, 1);
  pair.at_server().close("the test's end");
  pair.run();
  EXPECT_EQ(taken(pair.server), 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ShortMessages, EntriesAreReleasedOnceAndOnlyByTheirSession) {
  auto entries = std::make_unique<ShortMessages>();
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < kShortMessages; ++i) slots.push_back(entries->take(i % 2, 10).value());
  EXPECT_FALSE(entries->take(0, 10).has_value());
  EXPECT_EQ(entries->kept_by(0), kShortMessages / 2);
  entries->leave(0);
  EXPECT_EQ(entries->free(), kShortMessages / 2);
  const std::uint32_t again = entries->take(7, 10).value();
  for (const std::uint32_t slot : slots)
    entries->release(slot, 0);  // the buffers are free, or belong to another session
  EXPECT_EQ(entries->free(), kShortMessages / 2 - 1);
  for (const std::uint32_t slot : slots) entries->release(slot, 1);
  entries->release(again, 7);
  entries->release(again, 7);
  EXPECT_EQ(entries->free(), kShortMessages);
  EXPECT_FALSE(entries->take(0, ShortMessages::kBytesMax + 1).has_value());
  EXPECT_TRUE(entries->take(0, ShortMessages::kBytesMax).has_value());
}

}  // namespace
}  // namespace rdma_rpc::session::test

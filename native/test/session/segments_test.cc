// Tests messages in segments (WIRE 2.5). The lengths of the messages are around multiples of a segment's
// length. The messages are sent in both directions, with too few credits and too little memory, cancelled at
// any step, and sealed. The sides of the pair check all bytes and resources.
#include <gtest/gtest.h>

#include "seal/libcrypto.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using Violations = std::vector<std::string>;

constexpr std::uint32_t kSlot = 1024;

PairOptions pair_options(std::uint32_t segmented_bytes = kSegmentedBytesMax) {
  PairOptions options;
  options.inflight_max = 64;
  options.segmented_bytes = segmented_bytes;
  return options;
}

std::uint64_t bulk_of(Pair& pair) {
  return pair.client.context->stats().bulk_requests + pair.client.context->stats().bulk_responses;
}

TEST(Segments, CarryMessagesOfEveryLength) {
  for (const bool sealed : {false, true}) {
    if (sealed && seal::ciphers().empty()) continue;  // sealing_test reports that it does not run
    PairOptions options = pair_options();
    options.sealed = sealed;
    Pair pair(options);
    const std::uint32_t most = pair.at_client().segmented_bytes();
    ASSERT_GT(most, tested_credit_pool() ? 3 * kSlot : 8 * kSlot);
    int whole = 0;
    for (std::uint32_t bytes = kSlot - 34; bytes <= most - sizeof(Descriptor);
         bytes += bytes < 2100 ? 1 : 509) {
      SCOPED_TRACE(bytes);
      ASSERT_TRUE(pair.complete({.request_bytes = bytes, .response_bytes = bytes}).answered());
      whole += bytes + sizeof(Descriptor) > kSlot;
    }
    EXPECT_EQ(pair.server.reassembled_messages, whole);
    EXPECT_EQ(bulk_of(pair), 0u);
    EXPECT_EQ(pair.complete({.request_bytes = most, .response_bytes = 40'000}).kind, EvKind::settled);
    EXPECT_EQ(bulk_of(pair), 2u) << "longer messages are bulk";
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Segments, AreNotSentToAPeerThatDoesNotSupportThem) {
  Pair pair;
  EXPECT_EQ(pair.at_client().segmented_bytes(), 0u);
  EXPECT_TRUE(pair.complete({.request_bytes = 3000, .response_bytes = 3000}).answered());
  EXPECT_EQ(pair.server.reassembled_messages + pair.client.reassembled_messages, 0);
  EXPECT_EQ(pair.finish(), Violations{});
}

// With more segments, two sides could wait for credits that neither of them owes yet.
TEST(Segments, NeedFewerCreditsThanComeBackForSure) {
  for (std::uint32_t inflight = 1; inflight <= 256; ++inflight) {
    PairOptions options = pair_options();
    options.inflight_max = inflight;
    options.context.arena.budget_bytes = 64 << 20;  // for messages that get no long slot
    Pair pair(options);
    const std::uint32_t most = pair.at_client().segmented_bytes();
    const std::uint32_t frames = (most + kSlot - 1) / kSlot;
    // Credits beyond the guaranteed ones may be taken back.
    const std::uint32_t all = inflight + kControlReceives;
    const std::uint32_t credits = options.credit_pool ? std::min(all, kCertainReceives) : all;
    EXPECT_LE(frames + kControlCredits, credits - (credits / 2 - 1)) << inflight;
    // The arithmetic is checked for each number. Calls are made for small numbers, with which credits are
    // scarce, and for some others.
    if (most == 0 || (inflight > 40 && inflight % 32 != 0)) continue;
    std::vector<std::uint64_t> ids;
    const std::size_t bytes = most - sizeof(Descriptor);
    for (std::uint32_t i = 0; i < inflight; ++i)
      ids.push_back(pair.start({.request_bytes = bytes, .response_bytes = bytes}));
    pair.run();
    for (const std::uint64_t id : ids) EXPECT_TRUE(id == 0 || pair.call(id).answered()) << inflight;
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Segments, GoAsLargeMessagesWhileAllLongSlotsAreUnderWay) {
  PairOptions options = pair_options();
  options.inflight_max = 2 * kLongSlots;
  Pair pair(options);
  pair.hold_client(true);
  for (std::uint32_t i = 0; i < 2 * kLongSlots && pair.start({.request_bytes = 3000}) != 0; ++i) {
  }
  pair.run();
  EXPECT_EQ(pair.client.context->slots().free_long(), 0u);
  pair.hold_client(false);
  pair.run();
  EXPECT_EQ(pair.ledger.open(), 0u);
  EXPECT_GT(bulk_of(pair), 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Segments, OfCallsCancelledAtEachStep) {
  for (int steps = 0; steps < 40; ++steps) {
    PairOptions options = pair_options();
    options.inflight_max = 16;  // only two frames of one message may then wait for credits
    Pair pair(options);
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 16; ++i) ids.push_back(pair.start({.request_bytes = 1500, .response_bytes = 1900}));
    for (int i = 0; i < steps; ++i) pair.step();
    for (std::size_t i = 0; i < ids.size(); i += 2) pair.client.cancel(ids[i]);
    pair.run();
    for (std::size_t i = 1; i < ids.size(); i += 2) EXPECT_TRUE(pair.call(ids[i]).answered()) << steps;
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Segments, OfASessionThatEndsAtEachStep) {
  for (int steps = 0; steps < 60; ++steps) {
    Pair pair(pair_options());
    for (int i = 0; i < 20; ++i) pair.start({.request_bytes = 5000, .response_bytes = 7000});
    for (int i = 0; i < steps; ++i) pair.step();
    (steps % 2 == 0 ? pair.at_client() : pair.at_server()).close("the test says so");
    pair.run();
    // A side keeps the receives of an incomplete message as long as its session exists.
    Session* server = pair.server.context->find(pair.server_session);
    if (steps % 2 == 0 && server != nullptr) server->close("the other one has gone");
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

// A call that has exposed memory must wait until the access is revoked, and its response must wait, too.
TEST(Segments, NeverAnswerACallThatHasExposedMemory) {
  Pair pair(pair_options());
  EXPECT_TRUE(pair.complete({.request_bytes = 60'000, .response_bytes = 3000}).answered());
  EXPECT_TRUE(pair.complete({.response_bytes = 3000, .given_reply_buffer = 4096}).answered());
  EXPECT_EQ(pair.client.reassembled_messages, 0);
  EXPECT_EQ(bulk_of(pair), 4u);
  EXPECT_EQ(pair.finish(), Violations{});
}

// After one large response, reply buffers are offered for some time. Responses that fit into segments do not
// prolong this time.
TEST(Segments, ComeAgainSomeTimeAfterALargeAnswer) {
  Pair pair(pair_options());
  EXPECT_TRUE(pair.complete({.response_bytes = 60'000}).answered());
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(pair.complete({.response_bytes = 3000}).answered());
  const int before = pair.client.reassembled_messages;
  EXPECT_TRUE(pair.complete({.response_bytes = 3000}).answered());
  EXPECT_EQ(pair.client.reassembled_messages, before + 1);
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

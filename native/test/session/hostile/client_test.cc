// Tests a hostile client against a server session: false requests, gather entries and reply buffers, and
// credits that are never returned.
#include <gtest/gtest.h>

#include "session/hostile/hostile.h"

namespace rdma_rpc::session::test {
namespace {

FrameBytes bulk_request(std::uint32_t call, const std::vector<wire::GatherEntry>& gather_entries) {
  std::uint32_t total = 0;
  for (const wire::GatherEntry& gather_entry : gather_entries) total += gather_entry.length;
  FrameBytes frame(header(FrameType::request, call, 7, wire::has_gather_list));
  frame.add(wire::GatherListHead{total, static_cast<std::uint32_t>(gather_entries.size())});
  for (const wire::GatherEntry& gather_entry : gather_entries) frame.add(gather_entry);
  return frame;
}

/// Grants a reply buffer for the response to call 0. Returns the key that the response invalidates, or 0 when
/// the response invalidates no key.
std::uint32_t key_of_answer(Scene& s, std::uint32_t bytes) {
  const std::uint32_t reply_buffer = s.peer.expose(4096, bytes, fabric::access_remote_write);
  s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0, wire::has_reply_buffer))
                  .add(wire::ReplyBuffer{s.peer.address(4096), bytes, reply_buffer}));
  s.run();
  const auto response = s.peer.receive(FrameType::response);
  EXPECT_TRUE(response.has_value());
  return response ? response->invalidated_rkey : 0;
}

/// Appends the bytes of inline gather entries, which follow the gather list of the frame.
FrameBytes carrying(const std::vector<wire::GatherEntry>& gather_entries, std::size_t bytes) {
  return bulk_request(0, gather_entries).pad(bytes);
}

const Trick kClientTricks[] = {
    {"HonestRequest", "",
     [](Scene& s) {
       s.peer.request(0);
       s.run();
       const auto response = s.peer.receive(FrameType::response);
       ASSERT_TRUE(response.has_value());
       EXPECT_EQ(response->frame.header.call, 0u);
     }},
    {"HonestBulkRequest", "",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(100, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(100), 3000, key}}));
       s.run();
       const auto ask = s.peer.receive(FrameType::reply_buffer_request);
       ASSERT_TRUE(ask.has_value());
       EXPECT_EQ(ask->frame.header.method, 3000u);
       s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0)));  // the client has no memory
       s.run();
       const auto response = s.peer.receive(FrameType::response);
       ASSERT_TRUE(response.has_value());
       EXPECT_EQ(response->frame.header.method, 8u);
       EXPECT_EQ(response->invalidated_rkey, 0u) << "a refusal invalidates no key";
     },
     true},
    {"AlignedOfTwoGatherEntries", "",
     [](Scene& s) {
       const std::uint32_t first = s.peer.expose(100, 1000, fabric::access_remote_read);
       const std::uint32_t second = s.peer.expose(5000, 2000, fabric::access_remote_read);
       auto frame =
           bulk_request(0, {{s.peer.address(100), 1000, first}, {s.peer.address(5000), 2000, second}});
       frame.bytes[1] |= std::byte{wire::aligned};
       s.peer.send(frame);
       s.run();
       // The response has the same length, so the second buffer is at offset 1024.
       const auto ask = s.peer.receive(FrameType::reply_buffer_request);
       ASSERT_TRUE(ask.has_value());
       EXPECT_EQ(ask->frame.header.method, 1024u + 2000u);
       s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0)));
     },
     true},
    {"InlineEntries", "",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(100, 3000, fabric::access_remote_read);
       s.peer.send(carrying({{0, 5, 0}, {s.peer.address(100), 3000, key}, {0, 7, 0}}, 12));
       s.run();
       const auto ask = s.peer.receive(FrameType::reply_buffer_request);
       ASSERT_TRUE(ask.has_value());
       EXPECT_EQ(ask->frame.header.method, 3012u);
       EXPECT_EQ(s.victim.context->stats().bulk_reads, 1u);
       s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0)));
     },
     true},
    {"InlineEntriesThatTheAnswerDoesNotName", "",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(carrying({{0, 5, 0}, {s.peer.address(0), 3000, key}}, 5));
       s.run();
       EXPECT_EQ(key_of_answer(s, 3005), key) << "the key of the first gather entry that has one";
     },
     true},
    {"InlineEntriesLongerThanTheFrame", "do not add up to the frame",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(carrying({{0, 200, 0}, {s.peer.address(0), 3000, key}}, 199));
     }},
    {"InlineEntriesShorterThanTheFrame", "do not add up to the frame",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(carrying({{0, 200, 0}, {s.peer.address(0), 3000, key}}, 201));
     }},
    {"InlineEntriesAlone", "gather entries without a key",
     [](Scene& s) {
       s.peer.send(carrying({{0, 100, 0}, {0, 50, 0}}, 150));
     }},
    {"InlineEntryWithAnAddress", "inline gather entry with an address",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(carrying({{s.peer.address(0), 10, 0}, {s.peer.address(0), 3000, key}}, 10));
     }},
    {"InlineEntriesWhoseKeyIsForeign", "send failed",
     [](Scene& s) {
       s.peer.send(carrying({{0, 10, 0}, {s.peer.address(0), 3000, 0x777}, {0, 10, 0}}, 20));
     }},
    {"AlignedWithoutGatherEntries", "the flag of an aligned message in a request without gather entries",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::request, 0, 7, wire::aligned)).pad(8)); }},
    {"RequestOnASlotInUse", "slot that is in use",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();  // its response waits for a reply buffer
       s.peer.request(wire::call_word(0, 1));
     }},
    {"RequestOnASlotOutOfRange", "slot out of range",
     [](Scene& s) { s.peer.request(wire::call_word(kInflight, 0)); }},
    {"ResponseFromAClient", "response from a client", [](Scene& s) { s.peer.respond(0); }},
    {"ReplyBufferRequestFromAClient", "reply buffer request from a client",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::reply_buffer_request, 0, 1))); }},
    {"CancelOfNoCall", "",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::cancel, wire::call_word(1, 9), 1))); }},
    {"ReplyBufferForNoCall", "",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::reply_buffer, wire::call_word(1, 9), 0))); }},
    {"ReplyBufferThatWasNotRequested", "not asked for",
     [](Scene& s) {
       // The READ of this request does not complete while the world is stopped, so the call stays in this
       // state.
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       const memory::BlockId hog = s.victim.context->arena().alloc(8 << 20);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0)));
       s.run();
       s.victim.context->arena().release(hog);
     }},
    {"ReplyBufferShorterThanRequested", "smaller than requested",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0, wire::has_reply_buffer))
                       .add(wire::ReplyBuffer{s.peer.address(4096), 2999, 5}));
     }},
    {"ReplyBufferWithAForeignKey", "send failed",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0, wire::has_reply_buffer))
                       .add(wire::ReplyBuffer{s.peer.address(4096), 3000, 0x777}));
     }},
    {"ReplyBufferTwice", "",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       const std::uint32_t reply_buffer = s.peer.expose(4096, 3000, fabric::access_remote_write);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       // The second CANCEL finds the call answered, as if it and the response had crossed.
       for (int i = 0; i < 2; ++i) {
         s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0, wire::has_reply_buffer))
                         .add(wire::ReplyBuffer{s.peer.address(4096), 3000, reply_buffer}));
         s.run();
       }
     }},
    {"ReplyBufferOfARequestWithAForeignKey", "send failed",
     [](Scene& s) {
       s.peer.send(FrameBytes(header(FrameType::request, 0, 7, wire::has_reply_buffer))
                       .add(wire::ReplyBuffer{s.peer.address(0), 3000, 0x777})
                       .pad(5));
     },
     true},
    {"GatherEntriesWithAForeignKey", "send failed",
     [](Scene& s) {
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, 0x777}}));
     }},
    {"GatherEntriesWithAStaleKey", "send failed",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       EXPECT_EQ(key_of_answer(s, 3000), key);
       s.peer.send(bulk_request(wire::call_word(0, 1), {{s.peer.address(0), 3000, key}}));
     },
     true},
    {"GatherEntryLongerThanItsWindow", "send failed",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3001, key}}));
     },
     true},
    {"GatherEntriesBeyondTheMessageLimit", "",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), (4 << 20) + 1, key}}));
       s.run();
       const auto response = s.peer.receive(FrameType::response);
       ASSERT_TRUE(response.has_value());
       EXPECT_EQ(response->frame.header.method, 8u);
       EXPECT_EQ(response->frame.header.flags & wire::not_run, wire::not_run);
       EXPECT_EQ(response->invalidated_rkey, 0u);
       EXPECT_EQ(s.victim.context->stats().bulk_reads, 0u);
     }},
    {"FramesWithoutCredits", "frame beyond the credits",
     [](Scene& s) {
       // The peer returns no credits, so in the end no credit can be returned to it. The peer nevertheless
       // continues to send.
       for (int i = 0; i < 2000 && s.peer.alive(); ++i) {
         s.peer.send(FrameBytes(header(FrameType::cancel, wire::call_word(1, 9), 1)));
         s.run();
         while (s.peer.receive()) {
         }
       }
     }},
    {"CreditsBeyondReason", "more credits than receives",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::credit, 0, 0, 0, 0xffff))); }},
    {"FramesBeyondTheCredits", "send failed",
     [](Scene& s) {
       // The victim has no turn in this time, so it reposts no receive.
       for (std::uint32_t i = 0; i <= kInflight + kControlReceives; ++i) {
         s.peer.send(FrameBytes(header(FrameType::cancel, 3, 1)));
       }
       std::optional<WcStatus> last;
       while (const auto outcome = s.peer.outcome()) last = outcome;
       EXPECT_EQ(last, WcStatus::rnr_retry_exc_err);
       EXPECT_FALSE(s.peer.alive());
     }},
};

class HostileClient : public testing::TestWithParam<Trick> {};
INSTANTIATE_TEST_SUITE_P(Tries, HostileClient, testing::ValuesIn(kClientTricks),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(HostileClient, HurtsOnlyItsOwnSession) {
  if (GetParam().needs_windows) RDMA_RPC_NEEDS_WINDOWS();
  play(GetParam(), false);
}

TEST(HostileClientStalls, AndTheQueueOfItsAnswersIsLimited) {
  // The client never returns a credit, and reuses its slot at once by cancelling its requests.
  Scene scene(false);
  for (std::uint32_t i = 0; i < 400 && scene.peer.alive() && !scene.victim.is_down(scene.session); ++i) {
    scene.peer.request(wire::call_word(0, i));
    scene.run();
    while (scene.peer.receive()) {
    }
  }
  EXPECT_TRUE(scene.victim.is_down(scene.session));
  scene.end();
}

TEST(HostileClientStalls, AndHoldsSendSlotsOnlyForATime) {
  // The client sends requests until responses wait for credits, which it never returns. The waiting responses
  // hold send slots, which all sessions share.
  Scene scene(false);
  const std::uint32_t free = scene.victim.free_slots();
  for (std::uint32_t i = 0; i < kInflight + kControlReceives; ++i) {
    scene.peer.request(wire::call_word(0, i));
    scene.pair.step();
    while (scene.peer.receive()) {
    }
  }
  EXPECT_LT(scene.victim.free_slots(), free);
  let_pass(scene.pair.world, {&scene.victim}, kNoCreditNs - 1'000'000'000);
  EXPECT_FALSE(scene.victim.is_down(scene.session)) << "the peer may only be stopped";
  let_pass(scene.pair.world, {&scene.victim}, 2'000'000'000);
  scene.expect_dies("has returned no credits for 120 s");  // expect_dies() also checks the slots
}

TEST(HostileClientStalls, AndHoldsTheLastSendSlotForAShorterTime) {
  Scene scene(false);
  for (std::uint32_t i = 0; i < kInflight + kControlReceives; ++i) {
    scene.peer.request(wire::call_word(0, i));
    scene.pair.step();
    while (scene.peer.receive()) {
    }
  }
  // The other slots are also in use.
  std::int32_t& free = scene.victim.context->control()[boundary::ctl::free_slots];
  const std::int32_t others = std::exchange(free, 0);
  let_pass(scene.pair.world, {&scene.victim}, kNoCreditShortNs - 1'000'000'000);
  EXPECT_FALSE(scene.victim.is_down(scene.session));
  let_pass(scene.pair.world, {&scene.victim}, 2'000'000'000);
  free += others;
  scene.expect_dies("has returned no credits for 30 s");
}

TEST(HostileClientStalls, AndItsCancelledRequestsDoNotFillTheQueueForMemory) {
  Scene scene(false);
  const memory::BlockId hog = scene.victim.context->arena().alloc(8 << 20);
  const std::uint32_t key = scene.peer.expose(0, 3000, fabric::access_remote_read);
  for (std::uint32_t i = 0; i < 50; ++i) {
    // The first request waits for ever at the head of the queue. The other calls are cancelled one after
    // another.
    scene.peer.send(bulk_request(wire::call_word(i == 0 ? 0 : 1, i), {{scene.peer.address(0), 3000, key}}));
    if (i != 0) scene.peer.send(FrameBytes(header(FrameType::cancel, wire::call_word(1, i), 1)));
    scene.run();
  }
  EXPECT_LE(scene.victim.context->memory_waiters(), std::size_t{kInflight});
  scene.victim.context->arena().release(hog);
  scene.run();
  scene.end();
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests a hostile server against a client session: responses to calls that do not wait for one, and keys and
// reply buffers of other calls.
#include <gtest/gtest.h>

#include "session/hostile/hostile.h"

namespace rdma_rpc::session::test {
namespace {

const Trick kServerTricks[] = {
    {"SecondResponse", "waits for none",
     [](Scene& s) {
       const auto request = s.request({});
       s.ran(s.id);
       s.peer.respond(request.frame.header.call);
       s.peer.respond(request.frame.header.call);
     }},
    {"SecondResponseInALaterTurn", "waits for none",
     [](Scene& s) {
       const auto request = s.request({});
       s.ran(s.id);
       s.peer.respond(request.frame.header.call);
       s.run();
       s.peer.respond(request.frame.header.call);
     }},
    {"ResponseToAnIdleSlot", "waits for none", [](Scene& s) { s.peer.respond(wire::call_word(2, 0)); }},
    {"ResponseToAFutureCall", "waits for none",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.respond(wire::call_word(0, wire::call_generation(request.frame.header.call) + 1));
     }},
    {"ResponseToAPastCall", "waits for none",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.respond(wire::call_word(0, wire::call_generation(request.frame.header.call) - 1));
     }},
    {"ResponseToASlotOutOfRange", "slot out of range",
     [](Scene& s) { s.peer.respond(wire::call_word(kInflight, 1)); }},
    {"LateResponseAfterACancel", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.victim.cancel(s.id);
       s.peer.respond(request.frame.header.call);
     }},
    {"LateResponseTwice", "waits for none",
     [](Scene& s) {
       const auto request = s.request({});
       s.victim.cancel(s.id);
       s.peer.respond(request.frame.header.call);
       s.peer.respond(request.frame.header.call);
     }},
    {"LateResponseToAReusedSlot", "",
     [](Scene& s) {
       const auto first = s.request({});
       s.victim.cancel(s.id);
       s.run();
       const auto second = s.request({});
       s.peer.respond(first.frame.header.call);
       s.ran(s.id);
       s.peer.respond(second.frame.header.call);
     }},
    {"LateResponseToAReusedSlotTwice", "waits for none",
     [](Scene& s) {
       const auto first = s.request({});
       s.victim.cancel(s.id);
       s.run();
       s.request({});
       s.peer.respond(first.frame.header.call);
       s.run();
       s.peer.respond(first.frame.header.call);  // the one late response that the cancelled call may get
     }},
    {"ResponseToAFutureCallAfterACancel", "waits for none",
     [](Scene& s) {
       s.request({});
       s.victim.cancel(s.id);
       s.run();
       const auto request = s.request({});
       s.peer.respond(wire::call_word(wire::call_slot(request.frame.header.call),
                                      wire::call_generation(request.frame.header.call) + 1));
     }},
    {"KeyOfACallThatHasEnded", "receive failed",
     [](Scene& s) {
       const auto first = s.request({.request_bytes = 2000});
       const std::uint32_t key = wire::gather_entry_at(first.bytes.data(), first.frame, 0).rkey;
       s.ran(s.id);
       s.peer.respond(first.frame.header.call, 0, key);
       s.run();
       // Uses the same window, bound for another call.
       const auto second = s.request({.request_bytes = 2000});
       s.peer.respond(second.frame.header.call, 0, key);
     },
     true},
    {"KeyOfAnotherSession", "receive failed",
     [](Scene& s) {
       const auto own = s.request({.request_bytes = 2000});
       const std::uint32_t session = s.victim.open({true, kInflight, 4 << 20, 4 << 20});
       ScriptedPeer honest(s.pair.world, kInflight, 1024);
       honest.connect(s.victim.session(session));
       const std::uint64_t id = s.victim.start(session, {.request_bytes = 2000});
       s.run();
       const auto request = honest.receive(FrameType::request);
       ASSERT_TRUE(request.has_value());
       const wire::GatherEntry gather_entry = wire::gather_entry_at(request->bytes.data(), request->frame, 0);
       s.peer.respond(own.frame.header.call, 0, gather_entry.rkey);
       s.run();
       honest.read(gather_entry.addr, gather_entry.length, gather_entry.rkey);
       s.run();
       EXPECT_EQ(honest.outcome(), WcStatus::success) << "its window is unchanged";
       s.ran(id);
       honest.respond(request->frame.header.call, 0, gather_entry.rkey);
       s.run();
       EXPECT_TRUE(s.pair.call(id).answered());
       s.victim.session(session).close("the test is over");
     },
     true},
    {"LateResponseWithAKey", "receive failed",
     [](Scene& s) {
       const auto request = s.request({});
       s.victim.cancel(s.id);
       s.peer.respond(request.frame.header.call, 0, 0x1234);
     },
     true},
    {"WrittenWithoutAReplyBuffer", "reply buffer that it was not given",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{5, 0}));
     }},
    {"WrittenWithoutAReplyBufferButGatherEntries", "beyond its reply buffer",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{5, 0}));
     }},
    {"AlignedThatWasNotWritten", "the flag of an aligned message in a response that was not written",
     [](Scene& s) {
       const auto request = s.request({.given_reply_buffer = 4096});
       s.peer.send(
           FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::aligned)).pad(9));
     }},
    {"AlignedBeyondTheReplyBuffer", "beyond its reply buffer",
     [](Scene& s) {
       const auto request = s.request({.given_reply_buffer = 4096});
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0,
                                     wire::written | wire::aligned))
                       .add(wire::Written{request.frame.reply_buffer.length + 1, 0}));
     }},
    {"WrittenBeyondTheReplyBuffer", "beyond its reply buffer",
     [](Scene& s) {
       const auto request = s.request({.given_reply_buffer = 4096});
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{request.frame.reply_buffer.length + 1, 0}));
     }},
    {"WrittenIntoAReplyBufferThatWasReplaced", "beyond its reply buffer",
     [](Scene& s) {
       // The arena has no room for the second reply buffer, so the call waits without one.
       const memory::BlockId hog = s.victim.context->arena().alloc(7 << 20);
       const auto request = s.request({.given_reply_buffer = 4096});
       s.peer.send(FrameBytes(header(FrameType::reply_buffer_request, request.frame.header.call, 4 << 20)));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{5, 0}));
       s.run();
       s.victim.context->arena().release(hog);
     }},
    {"WrittenIntoAReplyBufferThatWasRefused", "beyond its reply buffer",
     [](Scene& s) {
       const auto request = s.request({.given_reply_buffer = 4096});
       s.pair.world.fail_nth(fabric::SimResource::window, 1);
       s.peer.send(FrameBytes(header(FrameType::reply_buffer_request, request.frame.header.call, 9000)));
       s.run();
       const auto reply_buffer = s.peer.receive(FrameType::reply_buffer);
       ASSERT_TRUE(reply_buffer.has_value());
       EXPECT_EQ(reply_buffer->frame.header.flags, 0);
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{5000, 0}));
     },
     true},
    {"KeyOfAnotherCall", "key that is not its call's",
     [](Scene& s) {
       const auto first = s.request({.request_bytes = 2000});
       const auto second = s.request({.request_bytes = 2000});
       s.peer.respond(first.frame.header.call, 0,
                      wire::gather_entry_at(second.bytes.data(), second.frame, 0).rkey);
     },
     true},
    {"KeyThatIsNone", "receive failed",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       s.peer.respond(request.frame.header.call, 0, 0x4321);
     },
     true},
    {"KeyInACreditFrame", "key invalidated by a frame that is no response",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       s.peer.send(FrameBytes(header(FrameType::credit, 0, 0)),
                   wire::gather_entry_at(request.bytes.data(), request.frame, 0).rkey);
     },
     true},
    {"NoKeyAtAll", "",
     [](Scene& s) {
       const auto request =
           s.request({.request_bytes = 5000, .request_gather_entries = 3, .given_reply_buffer = 4096});
       s.ran(s.id);
       s.peer.respond(request.frame.header.call);
     }},
    {"ReplyBufferRequestTwice", "second reply buffer request",
     [](Scene& s) {
       const auto request = s.request({});
       for (int i = 0; i < 2; ++i)
         s.peer.send(FrameBytes(header(FrameType::reply_buffer_request, request.frame.header.call, 3000)));
     }},
    {"ReplyBufferRequestForNoCall", "",
     [](Scene& s) {
       s.peer.send(FrameBytes(header(FrameType::reply_buffer_request, wire::call_word(1, 5), 3000)));
     }},
    {"ReplyBufferRequestOfAbsurdSize", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.send(
           FrameBytes(header(FrameType::reply_buffer_request, request.frame.header.call, 0xffffffff)));
       s.run();
       const auto reply_buffer = s.peer.receive(FrameType::reply_buffer);
       ASSERT_TRUE(reply_buffer.has_value());
       EXPECT_EQ(reply_buffer->frame.header.flags, 0);
       EXPECT_EQ(s.victim.context->arena().counters().blocks_leased, 0u);
     }},
    {"ReplyBufferRequestAfterACancel", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.victim.cancel(s.id);
       s.peer.send(FrameBytes(header(FrameType::reply_buffer_request, request.frame.header.call, 3000)));
     }},
    {"NoAnswerToAReplyBufferGiven", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.send(FrameBytes(header(FrameType::reply_buffer_request, request.frame.header.call, 3000)));
       s.run();
       s.victim.cancel(s.id);
     }},
    {"RequestFromAServer", "request from a server", [](Scene& s) { s.peer.request(0); }},
    {"CancelFromAServer", "cancel from a server",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::cancel, 0, 1))); }},
    {"ReplyBufferFromAServer", "reply buffer from a server",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0))); }},
    {"CreditsBeyondReason", "more credits than receives",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::credit, 0, 0, 0, 0xffff))); }},
    {"OneCreditTooMany", "more credits than receives",
     [](Scene& s) {
       s.request({});
       s.peer.send(FrameBytes(header(FrameType::credit, 0, 0, 0, 2)));
     }},
    {"CreditsAsTheyAre", "",
     [](Scene& s) {
       s.request({});
       s.peer.send(FrameBytes(header(FrameType::credit, 0, 0, 0, 1)));
     }},
    {"MalformedFrame", "unknown frame type",
     [](Scene& s) {
       s.peer.send(FrameBytes({9, 0, 0, 0, 0, 0}));
     }},
    {"EmptyFrame", "shorter than its header", [](Scene& s) { s.peer.send(std::vector<std::byte>{}); }},
    {"FrameLongerThanAReceive", "receive failed",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::response, 0, 0)).pad(1024 + 64)); }},
    {"ReadBeyondAGatherEntry", "receive failed",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       const wire::GatherEntry gather_entry = wire::gather_entry_at(request.bytes.data(), request.frame, 0);
       s.peer.read(gather_entry.addr, gather_entry.length + 1, gather_entry.rkey);
       s.run();
       s.peer.outcome();
       EXPECT_FALSE(s.peer.alive());
     },
     true},
};

class HostileServer : public testing::TestWithParam<Trick> {};
INSTANTIATE_TEST_SUITE_P(Tries, HostileServer, testing::ValuesIn(kServerTricks),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(HostileServer, HurtsOnlyItsOwnSession) {
  if (GetParam().needs_windows) RDMA_RPC_NEEDS_WINDOWS();
  play(GetParam(), true);
}

/// An offset beyond the staging memory of such a small call.
constexpr int kBeyond = static_cast<int>(kStagingChunkBytes);

/// An access of the peer to memory that a call has exposed, before or after the response.
struct Exposure {
  const char* name;
  bool reply_buffer;  ///< access to the reply buffer, otherwise to a gather entry
  bool write;         ///< true for a WRITE, false for a READ
  int shift;          ///< number of bytes beyond the range at its start (< 0) or its end (> 0)
  bool after;         ///< the access comes after the call has settled
  WcStatus outcome;
  WcStatus staged;  ///< result without windows; the peer can then access exactly the session's staging memory
};

class HostileAccess : public testing::TestWithParam<Exposure> {};
INSTANTIATE_TEST_SUITE_P(
    Tries, HostileAccess,
    testing::Values(
        Exposure{"ReadOfAGatherEntry", false, false, 0, false, WcStatus::success, WcStatus::success},
        Exposure{"ReadBeforeAGatherEntry", false, false, -1, false, WcStatus::rem_access_err,
                 WcStatus::rem_access_err},
        Exposure{"ReadBehindAGatherEntry", false, false, 1, false, WcStatus::rem_access_err,
                 WcStatus::success},
        Exposure{"ReadBehindTheStagingMemory", false, false, kBeyond, false, WcStatus::rem_access_err,
                 WcStatus::rem_access_err},
        Exposure{"WriteToAGatherEntry", false, true, 0, false, WcStatus::rem_access_err, WcStatus::success},
        Exposure{"WriteToAReplyBuffer", true, true, 0, false, WcStatus::success, WcStatus::success},
        Exposure{"ReadOfAReplyBuffer", true, false, 0, false, WcStatus::rem_access_err, WcStatus::success},
        Exposure{"WriteBehindAReplyBuffer", true, true, 1, false, WcStatus::rem_access_err,
                 WcStatus::success},
        Exposure{"WriteBehindTheStagingMemory", true, true, kBeyond, false, WcStatus::rem_access_err,
                 WcStatus::rem_access_err},
        Exposure{"ReadOfAGatherEntryAfterwards", false, false, 0, true, WcStatus::rem_access_err,
                 WcStatus::success},
        Exposure{"WriteToAReplyBufferAfterwards", true, true, 0, true, WcStatus::rem_access_err,
                 WcStatus::success}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(HostileAccess, ReachesWhatTheCallExposedAndNoMore) {
  const Exposure& exposure = GetParam();
  Scene scene(true);
  const auto request = scene.request({.request_bytes = 2000, .given_reply_buffer = 4096});
  ASSERT_TRUE(request.frame.gather_entry_count == 1);
  const wire::GatherEntry gather_entry = wire::gather_entry_at(request.bytes.data(), request.frame, 0);
  wire::ReplyBuffer target =
      exposure.reply_buffer ? request.frame.reply_buffer
                            : wire::ReplyBuffer{gather_entry.addr, gather_entry.length, gather_entry.rkey};
  target.addr += static_cast<std::uint64_t>(std::int64_t{exposure.shift});
  if (exposure.after) {
    scene.ran(scene.id);
    scene.peer.respond(request.frame.header.call);
    scene.run();
    EXPECT_TRUE(scene.call().answered());
    while (scene.peer.outcome()) {
    }
  }
  if (exposure.write) {
    scene.peer.write(target.addr, target.length, target.rkey);
  } else {
    scene.peer.read(target.addr, target.length, target.rkey);
  }
  scene.run();
  // The ledger checks that the application's memory is unchanged.
  EXPECT_EQ(scene.peer.outcome(), has_windows() ? exposure.outcome : exposure.staged);
  scene.end();
}

TEST(HostileServerScheduled, AnswersACallWhoseRequestIsNotSentYet) {
  RDMA_RPC_NEEDS_WINDOWS();  // requests must wait for room to bind
  for (const bool ask : {false, true}) {
    PairOptions options;
    options.context.send_slots = 64;
    Pair pair(options);
    const std::uint32_t session = pair.client.open({true, 32, 4 << 20, 4 << 20});
    ScriptedPeer peer(pair.world, 32, 1024);
    peer.connect(pair.client.session(session));
    // Each request binds thirty windows, so the send queue is full of binds long before the last request is
    // sent.
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 24; ++i) {
      ids.push_back(pair.client.start(
          session, {.request_bytes = 3000, .request_gather_entries = 30, .request_in_arena = true}));
    }
    const std::uint32_t word = wire::call_word(pair.call(ids.back()).slot, 1);
    if (ask) {
      peer.send(FrameBytes(header(FrameType::reply_buffer_request, word, 3000)));
    } else {
      peer.respond(word);
    }
    run_world(pair.world, {&pair.client, &pair.server});
    ASSERT_TRUE(pair.client.is_down(session));
    for (const std::uint64_t id : ids) {
      EXPECT_TRUE(pair.call(id).ended());
    }
    EXPECT_TRUE(pair.complete({.request_bytes = 2000}).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

}  // namespace
}  // namespace rdma_rpc::session::test

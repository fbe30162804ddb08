// A hostile peer against one session: whatever it says or does, only that session ends, every call settles,
// the memory of the application stays as it was, and nothing leaks. Beside it an honest pair goes on in the
// same contexts.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "session/pair.h"
#include "session/scripted_peer.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Reason;
using boundary::Sent;
using fabric::WcStatus;
using wire::FrameType;
using Violations = std::vector<std::string>;

constexpr std::uint32_t kInflight = 4;

wire::Header header(FrameType type, std::uint32_t call, std::uint32_t method, std::uint8_t flags = 0,
                    std::uint16_t credits = 0) {
  return {static_cast<std::uint8_t>(type), flags, credits, call, method, 0};
}

/// An honest pair, and a session of `victim` whose peer is scripted.
struct Scene {
  explicit Scene(bool victim_is_client, PairOptions options = immediate())
      : pair(options),
        victim(victim_is_client ? pair.client : pair.server),
        session(
            victim.open({victim_is_client, kInflight, options.max_message_bytes, options.max_message_bytes})),
        peer(pair.world, kInflight, options.context.slot_bytes) {
    peer.connect(victim.session(session));
  }
  void run() { pair.run(); }
  /// Submits a call to the scripted peer and returns the request frame that arrives there.
  ScriptedPeer::Received request(const CallSpec& spec) {
    id = victim.start(session, spec);
    run();
    auto frame = peer.receive(FrameType::request);
    EXPECT_TRUE(frame.has_value());
    return frame ? *frame : ScriptedPeer::Received{};
  }
  CallRecord& call() { return pair.call(id); }
  /// The handler of the scripted peer ran: its word is all the oracle has.
  void ran(std::uint64_t which) { pair.call(which).began = 1; }
  void expect_survives() {
    run();
    EXPECT_FALSE(victim.is_down(session)) << victim.why_down(session);
    end();
  }
  void expect_dies(const std::string& why) {
    run();
    EXPECT_TRUE(victim.is_down(session)) << "it survived";
    EXPECT_NE(victim.why_down(session).find(why), std::string::npos) << victim.why_down(session);
    end();
  }
  void end() {
    EXPECT_TRUE(pair.complete({.request_bytes = 2000, .response_bytes = 3000}).answered());
    EXPECT_TRUE(pair.complete({}).answered());
    if (Session* open = victim.context->find(session)) open->close("the test is over");
    EXPECT_EQ(pair.finish(), Violations{});
  }

  Pair pair;
  Side& victim;
  std::uint32_t session;
  ScriptedPeer peer;
  std::uint64_t id = 0;
};

struct Trick {
  const char* name;
  const char* reason;  ///< why the session ends; empty: it goes on
  std::function<void(Scene&)> play;
};
void PrintTo(const Trick& trick, std::ostream* out) { *out << trick.name; }

// --- a hostile server
// ----------------------------------------------------------------------------------------------

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
    {"LateResponseWithAKey", "receive failed",
     [](Scene& s) {
       const auto request = s.request({});
       s.victim.cancel(s.id);
       s.peer.respond(request.frame.header.call, 0, 0x1234);
     }},
    {"WrittenWithoutASink", "sink that it was not given",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{5, 0}));
     }},
    {"WrittenWithoutASinkButPieces", "beyond its sink",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{5, 0}));
     }},
    {"WrittenBeyondTheSink", "beyond its sink",
     [](Scene& s) {
       const auto request = s.request({.given_sink = 4096});
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{request.frame.sink.length + 1, 0}));
     }},
    {"WrittenIntoASinkThatWasReplaced", "beyond its sink",
     [](Scene& s) {
       // The arena has no room for the second sink, so the call waits with none.
       const memory::BlockId hog = s.victim.context->arena().alloc(7 << 20);
       const auto request = s.request({.given_sink = 4096});
       s.peer.send(FrameBytes(header(FrameType::sink_request, request.frame.header.call, 4 << 20)));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{5, 0}));
       s.run();
       s.victim.context->arena().release(hog);
     }},
    {"WrittenIntoASinkThatWasRefused", "beyond its sink",
     [](Scene& s) {
       const auto request = s.request({.given_sink = 4096});
       s.pair.world.fail_nth(fabric::SimResource::window, 1);
       s.peer.send(FrameBytes(header(FrameType::sink_request, request.frame.header.call, 9000)));
       s.run();
       const auto sink = s.peer.receive(FrameType::sink);
       ASSERT_TRUE(sink.has_value());
       EXPECT_EQ(sink->frame.header.flags, 0);
       s.peer.send(FrameBytes(header(FrameType::response, request.frame.header.call, 0, wire::written))
                       .add(wire::Written{5000, 0}));
     }},
    {"KeyOfAnotherCall", "key that is not its call's",
     [](Scene& s) {
       const auto first = s.request({.request_bytes = 2000});
       const auto second = s.request({.request_bytes = 2000});
       s.peer.respond(first.frame.header.call, 0, wire::piece_at(second.bytes.data(), second.frame, 0).rkey);
     }},
    {"KeyThatIsNone", "receive failed",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       s.peer.respond(request.frame.header.call, 0, 0x4321);
     }},
    {"KeyInACreditFrame", "key invalidated by a frame that is no response",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       s.peer.send(FrameBytes(header(FrameType::credit, 0, 0)),
                   wire::piece_at(request.bytes.data(), request.frame, 0).rkey);
     }},
    {"NoKeyAtAll", "",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 5000, .request_pieces = 3, .given_sink = 4096});
       s.ran(s.id);
       s.peer.respond(request.frame.header.call);
     }},
    {"SinkRequestTwice", "second sink request",
     [](Scene& s) {
       const auto request = s.request({});
       for (int i = 0; i < 2; ++i)
         s.peer.send(FrameBytes(header(FrameType::sink_request, request.frame.header.call, 3000)));
     }},
    {"SinkRequestForNoCall", "",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::sink_request, wire::call_word(1, 5), 3000))); }},
    {"SinkRequestOfAbsurdSize", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.send(FrameBytes(header(FrameType::sink_request, request.frame.header.call, 0xffffffff)));
       s.run();
       const auto sink = s.peer.receive(FrameType::sink);
       ASSERT_TRUE(sink.has_value());
       EXPECT_EQ(sink->frame.header.flags, 0);
       EXPECT_EQ(s.victim.context->arena().counters().blocks_leased, 0u);
     }},
    {"SinkRequestAfterACancel", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.victim.cancel(s.id);
       s.peer.send(FrameBytes(header(FrameType::sink_request, request.frame.header.call, 3000)));
     }},
    {"NoAnswerToASinkGiven", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.send(FrameBytes(header(FrameType::sink_request, request.frame.header.call, 3000)));
       s.run();
       s.victim.cancel(s.id);
     }},
    {"RequestFromAServer", "request from a server", [](Scene& s) { s.peer.request(0); }},
    {"CancelFromAServer", "cancel from a server",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::cancel, 0, 1))); }},
    {"SinkFromAServer", "sink from a server",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::sink, 0, 0))); }},
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
    {"ReadBeyondAPiece", "receive failed",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       const wire::Piece piece = wire::piece_at(request.bytes.data(), request.frame, 0);
       s.peer.read(piece.addr, piece.length + 1, piece.rkey);
       s.run();
       s.peer.outcome();
       EXPECT_FALSE(s.peer.alive());
     }},
};

class HostileServer : public testing::TestWithParam<Trick> {};
INSTANTIATE_TEST_SUITE_P(Tries, HostileServer, testing::ValuesIn(kServerTricks),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(HostileServer, HurtsOnlyItsOwnSession) {
  Scene scene(true);
  GetParam().play(scene);
  if (*GetParam().reason == '\0') {
    scene.expect_survives();
  } else {
    scene.expect_dies(GetParam().reason);
  }
}

/// The memory that a call exposed, and what the peer may do to it: before the answer, and after.
struct Exposure {
  const char* name;
  bool sink;   ///< of the sink, else of a request piece
  bool write;  ///< else READ
  int shift;   ///< bytes beyond the range at its start (< 0) or its end (> 0)
  bool after;  ///< after the call has settled
  WcStatus outcome;
};

class HostileAccess : public testing::TestWithParam<Exposure> {};
INSTANTIATE_TEST_SUITE_P(
    Tries, HostileAccess,
    testing::Values(Exposure{"ReadOfAPiece", false, false, 0, false, WcStatus::success},
                    Exposure{"ReadBeforeAPiece", false, false, -1, false, WcStatus::rem_access_err},
                    Exposure{"ReadBehindAPiece", false, false, 1, false, WcStatus::rem_access_err},
                    Exposure{"WriteToAPiece", false, true, 0, false, WcStatus::rem_access_err},
                    Exposure{"WriteToASink", true, true, 0, false, WcStatus::success},
                    Exposure{"ReadOfASink", true, false, 0, false, WcStatus::rem_access_err},
                    Exposure{"WriteBehindASink", true, true, 1, false, WcStatus::rem_access_err},
                    Exposure{"ReadOfAPieceAfterwards", false, false, 0, true, WcStatus::rem_access_err},
                    Exposure{"WriteToASinkAfterwards", true, true, 0, true, WcStatus::rem_access_err}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(HostileAccess, ReachesWhatTheCallExposedAndNoMore) {
  const Exposure& exposure = GetParam();
  Scene scene(true);
  const auto request = scene.request({.request_bytes = 2000, .given_sink = 4096});
  ASSERT_TRUE(request.frame.piece_count == 1);
  const wire::Piece piece = wire::piece_at(request.bytes.data(), request.frame, 0);
  wire::Sink target = exposure.sink ? request.frame.sink : wire::Sink{piece.addr, piece.length, piece.rkey};
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
  EXPECT_EQ(scene.peer.outcome(), exposure.outcome);
  scene.end();
}

TEST(HostileServerScheduled, AnswersACallWhoseRequestIsNotSentYet) {
  for (const bool ask : {false, true}) {
    PairOptions options;
    options.context.send_slots = 64;
    Pair pair(options);
    const std::uint32_t session = pair.client.open({true, 32, 4 << 20, 4 << 20});
    ScriptedPeer peer(pair.world, 32, 1024);
    peer.connect(pair.client.session(session));
    // Thirty windows each: the send queue is full of binds long before the last of these is sent.
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 24; ++i) {
      ids.push_back(pair.client.start(
          session, {.request_bytes = 3000, .request_pieces = 30, .request_in_arena = true}));
    }
    const std::uint32_t word = wire::call_word(pair.call(ids.back()).slot, 1);
    if (ask) {
      peer.send(FrameBytes(header(FrameType::sink_request, word, 3000)));
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

// --- a hostile client
// ----------------------------------------------------------------------------------------------

FrameBytes bulk_request(std::uint32_t call, const std::vector<wire::Piece>& pieces) {
  std::uint32_t total = 0;
  for (const wire::Piece& piece : pieces) total += piece.length;
  FrameBytes frame(header(FrameType::request, call, 7, wire::has_pieces));
  frame.add(wire::PiecesHead{total, static_cast<std::uint32_t>(pieces.size())});
  for (const wire::Piece& piece : pieces) frame.add(piece);
  return frame;
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
       const auto ask = s.peer.receive(FrameType::sink_request);
       ASSERT_TRUE(ask.has_value());
       EXPECT_EQ(ask->frame.header.method, 3000u);
       s.peer.send(FrameBytes(header(FrameType::sink, 0, 0)));  // no memory here
       s.run();
       const auto response = s.peer.receive(FrameType::response);
       ASSERT_TRUE(response.has_value());
       EXPECT_EQ(response->frame.header.method, 8u);
       EXPECT_EQ(response->invalidated_rkey, key);
     }},
    {"RequestOnASlotInUse", "slot that is in use",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();  // its response waits for a sink
       s.peer.request(wire::call_word(0, 1));
     }},
    {"RequestOnASlotOutOfRange", "slot out of range",
     [](Scene& s) { s.peer.request(wire::call_word(kInflight, 0)); }},
    {"ResponseFromAClient", "response from a client", [](Scene& s) { s.peer.respond(0); }},
    {"SinkRequestFromAClient", "sink request from a client",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::sink_request, 0, 1))); }},
    {"CancelOfNoCall", "",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::cancel, wire::call_word(1, 9), 1))); }},
    {"SinkForNoCall", "",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::sink, wire::call_word(1, 9), 0))); }},
    {"SinkThatNobodyAskedFor", "not asked for",
     [](Scene& s) {
       // Its READ hangs as long as the world stands still, so the call stays as it is.
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       const memory::BlockId hog = s.victim.context->arena().alloc(8 << 20);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::sink, 0, 0)));
       s.run();
       s.victim.context->arena().release(hog);
     }},
    {"SinkShorterThanAskedFor", "shorter than asked for",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::sink, 0, 0, wire::has_sink))
                       .add(wire::Sink{s.peer.address(4096), 2999, 5}));
     }},
    {"SinkWithAForeignKey", "send failed",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::sink, 0, 0, wire::has_sink))
                       .add(wire::Sink{s.peer.address(4096), 3000, 0x777}));
     }},
    {"SinkTwice", "",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       const std::uint32_t sink = s.peer.expose(4096, 3000, fabric::access_remote_write);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       // The second one finds the call answered, as one that crossed the answer would.
       for (int i = 0; i < 2; ++i) {
         s.peer.send(FrameBytes(header(FrameType::sink, 0, 0, wire::has_sink))
                         .add(wire::Sink{s.peer.address(4096), 3000, sink}));
         s.run();
       }
     }},
    {"SinkOfARequestWithAForeignKey", "send failed",
     [](Scene& s) {
       s.peer.send(FrameBytes(header(FrameType::request, 0, 7, wire::has_sink))
                       .add(wire::Sink{s.peer.address(0), 3000, 0x777})
                       .pad(5));
     }},
    {"PiecesWithAForeignKey", "send failed",
     [](Scene& s) {
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, 0x777}}));
     }},
    {"PiecesWithAStaleKey", "send failed",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3000, key}}));
       s.run();
       s.peer.send(FrameBytes(header(FrameType::sink, 0, 0)));  // answered, and the key with it
       s.run();
       s.peer.send(bulk_request(wire::call_word(0, 1), {{s.peer.address(0), 3000, key}}));
     }},
    {"PieceLongerThanItsWindow", "send failed",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), 3001, key}}));
     }},
    {"PiecesBeyondTheMessageLimit", "",
     [](Scene& s) {
       const std::uint32_t key = s.peer.expose(0, 3000, fabric::access_remote_read);
       s.peer.send(bulk_request(0, {{s.peer.address(0), (4 << 20) + 1, key}}));
       s.run();
       const auto response = s.peer.receive(FrameType::response);
       ASSERT_TRUE(response.has_value());
       EXPECT_EQ(response->frame.header.method, 8u);
       EXPECT_EQ(response->frame.header.flags & wire::not_run, wire::not_run);
       EXPECT_EQ(response->invalidated_rkey, key);
       EXPECT_EQ(s.victim.context->stats().bulk_reads, 0u);
     }},
    {"CreditsBeyondReason", "more credits than receives",
     [](Scene& s) { s.peer.send(FrameBytes(header(FrameType::credit, 0, 0, 0, 0xffff))); }},
    {"FramesBeyondTheCredits", "send failed",
     [](Scene& s) {
       // The victim does not turn meanwhile, so it posts no receive again.
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
  Scene scene(false);
  GetParam().play(scene);
  if (*GetParam().reason == '\0') {
    scene.expect_survives();
  } else {
    scene.expect_dies(GetParam().reason);
  }
}

TEST(HostileClientStalls, AndTheLineOfItsAnswersHasAnEnd) {
  // It never gives a credit back and reuses its slot at once, by cancelling what it has asked for.
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

TEST(HostileClientStalls, AndItsCancelledRequestsDoNotFillTheLineForMemory) {
  Scene scene(false);
  const memory::BlockId hog = scene.victim.context->arena().alloc(8 << 20);
  const std::uint32_t key = scene.peer.expose(0, 3000, fabric::access_remote_read);
  for (std::uint32_t i = 0; i < 50; ++i) {
    // The first waits for ever at the head of the line, the others come and go.
    scene.peer.send(bulk_request(wire::call_word(i == 0 ? 0 : 1, i), {{scene.peer.address(0), 3000, key}}));
    if (i != 0) scene.peer.send(FrameBytes(header(FrameType::cancel, wire::call_word(1, i), 1)));
    scene.run();
  }
  EXPECT_LE(scene.victim.context->memory_waiters(), std::size_t{kInflight});
  scene.victim.context->arena().release(hog);
  scene.run();
  scene.end();
}

// --- anything at all
// -----------------------------------------------------------------------------------------------

/// Frames of a grammar that is half right, so that they get further than garbage would.
FrameBytes random_frame(std::mt19937_64& random, std::uint32_t key, std::uint64_t addr) {
  const auto any = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t call = wire::call_word(any(kInflight + (any(20) == 0)), any(4));
  const auto type = static_cast<FrameType>(any(40) == 0 ? any(256) : 1 + any(6));
  const std::uint32_t rkey = any(3) == 0 ? static_cast<std::uint32_t>(random()) : key;
  const std::uint32_t length = any(4) == 0 ? static_cast<std::uint32_t>(random()) : 1 + any(4000);
  std::uint32_t method = any(3);
  std::uint8_t flags = 0;
  const bool pieces = type == FrameType::request && any(3) == 0;
  const bool sink = (type == FrameType::request || type == FrameType::sink) && any(2) == 0;
  const bool written = type == FrameType::response && any(3) == 0;
  if (type == FrameType::request) method = 7;
  if (type == FrameType::cancel) method = any(2) == 0 ? 1 : 4;
  if (type == FrameType::credit || type == FrameType::sink) method = 0;
  if (type == FrameType::sink_request) method = length;
  if (pieces) flags |= wire::has_pieces;
  if (sink) flags |= wire::has_sink;
  if (written) flags |= wire::written;
  if (any(60) == 0) flags ^= static_cast<std::uint8_t>(1u << any(8));
  FrameBytes frame({static_cast<std::uint8_t>(type), flags,
                    static_cast<std::uint16_t>(any(8) == 0 ? any(3) : 0),
                    type == FrameType::credit ? 0 : call, method, 0});
  if (sink) frame.add(wire::Sink{addr, length, rkey});
  if (pieces) {
    const std::uint32_t count = 1 + any(3);
    frame.add(wire::PiecesHead{length * count + (any(10) == 0), count});
    for (std::uint32_t i = 0; i < count; ++i) frame.add(wire::Piece{addr, length, rkey});
  }
  if (written) frame.add(wire::Written{1 + any(9000), 0});
  if (!pieces && !written && (type == FrameType::request || type == FrameType::response)) frame.pad(any(64));
  return frame;
}

TEST(HostileFuzz, ThousandsOfFramesHurtOnlyTheirSession) {
  std::size_t frames = 0, deaths = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Pair pair(seeded(seed, seed % 2 == 0 ? immediate() : PairOptions{}));
    for (int life = 0; life < 5; ++life) {
      const bool victim_is_client = random() % 2 == 0;
      Side& victim = victim_is_client ? pair.client : pair.server;
      const std::uint32_t session = victim.open({victim_is_client, kInflight, 4 << 20, 4 << 20});
      ScriptedPeer peer(pair.world, kInflight, 1024);
      peer.connect(victim.session(session));
      const std::uint32_t key =
          peer.expose(0, 4096, random() % 2 == 0 ? fabric::access_remote_read : fabric::access_remote_write);
      std::vector<std::uint64_t> ids;
      for (int i = 0; i < 60 && peer.alive() && !victim.is_down(session); ++i, ++frames) {
        if (victim_is_client && random() % 3 == 0) {
          const std::uint64_t id = victim.start(
              session, {.request_bytes = random() % 5000, .given_sink = random() % 3 == 0 ? 4096u : 0u});
          if (id != 0) ids.push_back(id);
        }
        if (!ids.empty() && random() % 6 == 0) victim.cancel(ids[random() % ids.size()]);
        const auto invalidate = random() % 50 == 0 ? static_cast<std::uint32_t>(random()) : 0u;
        peer.send(random_frame(random, key, peer.address(0)), invalidate);
        for (int steps = static_cast<int>(random() % 6); steps > 0; --steps) pair.step();
        while (peer.receive()) {
        }
      }
      if (Session* open = victim.context->find(session)) open->close("enough");
      pair.run();
      deaths += victim.is_down(session);
      for (const std::uint64_t id : ids) {
        // What such a server claims is its own affair; that the call ended once is ours.
        EXPECT_EQ(pair.call(id).last_events, 1);
        pair.call(id).sent = Sent::maybe;
      }
    }
    EXPECT_TRUE(pair.complete({.request_bytes = 2000, .response_bytes = 2000}).answered());
    ASSERT_EQ(pair.finish(), Violations{});
  }
  EXPECT_EQ(deaths, 1000u);
  EXPECT_GT(frames, 4'000u);
}

}  // namespace
}  // namespace rdma_rpc::session::test

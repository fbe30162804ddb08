// Peers that are stopped while other calls wait for memory of the arena: those calls get some within seconds,
// from the peer that has stood still for longest, and nobody loses anything while there is enough.
#include <gtest/gtest.h>

#include "session/server/unread_streams.h"
#include "session/sides/crowd.h"

namespace rdma_rpc::session::test {
namespace {

namespace ctl = boundary::ctl;
using boundary::Processed;
using Violations = std::vector<std::string>;

constexpr std::uint32_t kResourceExhausted = 8;
constexpr std::uint64_t kTickNs = 2 * kHoldCheckNs;
constexpr std::size_t kBytes = 4 << 20;
constexpr std::size_t kArenaBytes = std::size_t{64} << 20;
/// As many answers of kBytes as sessions can have beside each other: the reserve of the others is left.
constexpr std::size_t kStopped = 13;

PairOptions small_arena() {
  PairOptions options = Crowd::large_messages();
  options.context.arena.budget_bytes = kArenaBytes;
  return options;
}
/// The reader's own CPU writes what READs bring, as over tcp.
PairOptions by_cpu() {
  PairOptions options = small_arena();
  options.sim.capabilities.reads_memory_late = true;
  return options;
}

/// Clients that stop one after the other, and the last one, which goes on.
struct GiveUp : Crowd {
  explicit GiveUp(std::size_t stopped = kStopped, const PairOptions& options = small_arena())
      : Crowd(stopped + 1, options), count(stopped) {
    server.owned_answers = true;
  }

  std::uint64_t held() const { return server.context->arena().counters().blocks_leased; }
  /// Clients stop when the server has their request, and before they are asked for memory for the answer.
  void stop_asking(std::uint64_t between_ns = 0) {
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back(start(i, {.response_bytes = kBytes, .response_in_arena = true, .answer = Answer::later}));
      ASSERT_TRUE(until([&] { return server.unanswered() != 0; }));
      stop(i);
      ASSERT_TRUE(server.answer());
      let_pass(kTickNs + between_ns);
    }
    ASSERT_EQ(held(), count);
  }
  /// Clients stop when the server has begun to send them their answers.
  void stop_writing() {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t writes = server.context->stats().bulk_writes;
      ids.push_back(
          start(i, {.response_bytes = kBytes, .response_in_arena = true, .given_reply_buffer = kBytes}));
      ASSERT_TRUE(until([&] { return server.context->stats().bulk_writes != writes; }));
      stop(i);
    }
    ASSERT_EQ(held(), count);
  }
  /// Clients stop when the server READs their request.
  void stop_reading() {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t reads = server.context->flow().read_bytes();
      ids.push_back(start(i, {.request_bytes = kBytes, .request_in_arena = true}));
      ASSERT_TRUE(until([&] { return server.context->flow().read_bytes() != reads; }));
      stop(i);
    }
    ASSERT_EQ(held(), count);
  }

  /// "JS" has an answer to the last client, or that one, and finds no memory for it. Returns whether it does.
  bool waits(std::size_t bytes = 1 << 20) { return waits(bytes, count); }
  bool waits(std::size_t bytes, std::size_t client) {
    const memory::OwnerId owner = server.session(at_server[client]).owner();
    const memory::BlockId block = server.context->alloc(bytes, memory::Use::response, owner);
    if (block == memory::kNoBlock) {
      server.context->control()[ctl::want_memory] = 1;
      return true;
    }
    server.context->arena().release(block);
    return false;
  }
  /// The same until it finds some. Returns how long that has taken, an hour if it comes to nothing.
  std::uint64_t gets_memory_ns() {
    for (std::uint64_t ns = 0; ns < 60'000'000'000; ns += kTickNs) {
      if (server.context->control()[ctl::want_memory] == 0 && !waits()) return ns;
      let_pass(kTickNs);
    }
    return std::uint64_t{3'600} * 1'000'000'000;
  }

  std::size_t ended(std::uint32_t status) {
    std::size_t calls = 0;
    for (const std::uint64_t id : ids) calls += ledger.at(id).ended() && ledger.at(id).status == status;
    return calls;
  }
  std::size_t down() const {
    std::size_t sessions = 0;
    for (std::size_t i = 0; i < count; ++i) sessions += !why_down(i).empty();
    return sessions;
  }
  /// Of the first session that has ended.
  std::string reason() const {
    std::string why;
    for (std::size_t i = 0; i < count && why.empty(); ++i) why = why_down(i);
    return why;
  }
  void resume_all() {
    for (std::size_t i = 0; i < count; ++i) resume(i);
    run();
  }

  std::size_t count;
  std::vector<std::uint64_t> ids;
};

TEST(GiveUp, AnswersThatStoppedClientsGrantNoMemoryForMakeRoomForOthers) {
  GiveUp crowd;
  crowd.stop_asking();
  ASSERT_TRUE(crowd.waits());
  EXPECT_LE(crowd.gets_memory_ns(), kGiveUpNs + kGiveUpWaitNs + 2 * kTickNs);
  EXPECT_GE(crowd.held(), kStopped - 2) << "no more is taken than is needed";
  crowd.resume_all();
  EXPECT_EQ(crowd.ended(0) + crowd.ended(kResourceExhausted), kStopped);
  EXPECT_GE(crowd.ended(kResourceExhausted), 1u);
  EXPECT_EQ(crowd.down(), 0u);
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(GiveUp, TheOneThatHasStoodStillForLongestLosesItsAnswerFirst) {
  GiveUp crowd;
  crowd.stop_asking(kGiveUpNs);
  ASSERT_TRUE(crowd.waits());
  EXPECT_LE(crowd.gets_memory_ns(), kGiveUpWaitNs + 3 * kTickNs);
  crowd.resume_all();
  const std::size_t lost = crowd.ended(kResourceExhausted);
  EXPECT_GE(lost, 1u);
  for (std::size_t i = 0; i < lost; ++i)
    EXPECT_EQ(crowd.ledger.at(crowd.ids[i]).status, kResourceExhausted) << i;
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(GiveUp, NobodyLosesAnythingWhileNoCallWaits) {
  GiveUp crowd;
  crowd.stop_asking();
  crowd.let_pass(10 * kGiveUpNs);
  EXPECT_EQ(crowd.held(), kStopped);
  crowd.resume_all();
  EXPECT_EQ(crowd.ended(0), kStopped);
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(GiveUp, NobodyLosesAnythingForACallThatWaitsForALimitOfItsOwnSession) {
  PairOptions options = small_arena();
  options.arena_max_bytes = 2 * kBytes;
  GiveUp crowd(4, options);
  crowd.stop_asking();
  const memory::OwnerId owner = crowd.server.session(crowd.at_server[4]).owner();
  const memory::BlockId own = crowd.server.context->alloc(2 * kBytes, memory::Use::response, owner);
  ASSERT_NE(own, memory::kNoBlock);
  ASSERT_TRUE(crowd.waits());
  crowd.let_pass(10 * kGiveUpNs);
  EXPECT_EQ(crowd.held(), 5u);
  crowd.server.context->arena().release(own);
  crowd.resume_all();
  EXPECT_EQ(crowd.ended(0), 4u);
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(GiveUp, NobodyLosesAnythingForCallsOfItsOwn) {
  GiveUp crowd(1);
  crowd.stop_asking();
  ASSERT_TRUE(crowd.waits(kArenaBytes / 8 * 7, 0));
  crowd.let_pass(10 * kGiveUpNs);
  EXPECT_EQ(crowd.held(), 1u);
  // Of another session: it is one to make room for.
  ASSERT_TRUE(crowd.waits(kArenaBytes / 8 * 7));
  crowd.let_pass(kGiveUpWaitNs + kTickNs);
  EXPECT_EQ(crowd.held(), 0u);
  crowd.resume_all();
  EXPECT_EQ(crowd.finish(), Violations{});
}

/// The clock is that of the server's thread: one that was stopped itself finds first what has come.
TEST(GiveUp, NobodyIsJudgedByTimeInWhichTheServerWasStopped) {
  GiveUp crowd;
  crowd.stop_asking();
  ASSERT_TRUE(crowd.waits());
  for (std::size_t i = 0; i < crowd.count; ++i) crowd.resume(i);
  crowd.world.advance(10 * kGiveUpNs);
  crowd.run();
  EXPECT_EQ(crowd.ended(0), kStopped);
  EXPECT_EQ(crowd.finish(), Violations{});
}

/// A device may READ the memory of what has been written, so only the end of its session gives it back.
TEST(GiveUp, AnswersThatStoppedClientsDoNotTakeEndTheirSessionsForOthers) {
  GiveUp crowd;
  crowd.stop_writing();
  ASSERT_TRUE(crowd.waits());
  EXPECT_LE(crowd.gets_memory_ns(), kGiveUpNs + kGiveUpWaitNs + 3 * kTickNs);
  EXPECT_GE(crowd.down(), 1u);
  EXPECT_LE(crowd.down(), 3u);
  EXPECT_NE(crowd.reason().find("other calls waited"), std::string::npos) << crowd.reason();
  crowd.resume_all();
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(GiveUp, RequestsOfStoppedClientsMakeRoomForOthersAndTheirSessionsGoOnWhereACpuReads) {
  RDMA_RPC_NEEDS_WINDOWS();  // with staging memory READs land elsewhere
  GiveUp crowd(11, by_cpu());
  crowd.stop_reading();
  const std::uint64_t honest = crowd.start(11, {.request_bytes = kBytes});
  crowd.let_pass(kGiveUpNs + kGiveUpWaitNs + 3 * kTickNs);
  EXPECT_TRUE(crowd.ledger.at(honest).answered());
  EXPECT_EQ(crowd.ledger.at(honest).status, 0u);
  crowd.resume_all();
  EXPECT_GE(crowd.ended(kResourceExhausted), 1u);
  for (const std::uint64_t id : crowd.ids) {
    if (crowd.ledger.at(id).status != kResourceExhausted) continue;
    EXPECT_EQ(crowd.ledger.at(id).processed, Processed::no) << id;
  }
  EXPECT_EQ(crowd.down(), 0u);
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(GiveUp, RequestsOfStoppedClientsEndTheirSessionsForOthersWhereADeviceReads) {
  GiveUp crowd(11);
  crowd.stop_reading();
  const std::uint64_t honest = crowd.start(11, {.request_bytes = kBytes});
  crowd.let_pass(kGiveUpNs + kGiveUpWaitNs + 3 * kTickNs);
  EXPECT_EQ(crowd.ledger.at(honest).status, 0u);
  EXPECT_TRUE(crowd.ledger.at(honest).answered());
  EXPECT_GE(crowd.down(), 1u);
  EXPECT_NE(crowd.reason().find("other calls waited"), std::string::npos) << crowd.reason();
  crowd.resume_all();
  EXPECT_EQ(crowd.finish(), Violations{});
}

// --- messages of streams, whose readers may take their time

/// One stream whose reader does nothing, with this number of large messages sent.
struct Unread : GiveUp {
  explicit Unread(std::size_t messages = 1) : GiveUp(1) {
    clients[0].reads = false;
    for (std::size_t i = 0; i < messages; ++i) {
      ids.push_back(start(
          0, {.response_bytes = kMessage, .response_in_arena = true, .answer = Answer::later, .part = true}));
      EXPECT_TRUE(until([&] { return server.unanswered() != 0; }));
      EXPECT_TRUE(server.answer());
      run();
    }
    EXPECT_EQ(held(), messages);
    EXPECT_EQ(clients[0].held_back.size(), messages);
  }
  /// More than a client has for what is sent ahead of a reader.
  static constexpr std::size_t kMessage = 9 << 20;
  static_assert(kMessage > kArenaBytes / 8);
  bool others_wait() { return waits(kArenaBytes / 8 * 7 - kMessage / 2); }
};

TEST(GiveUp, MessagesOfAStreamThatIsNotReadMakeRoomForOthersInTheEnd) {
  Unread crowd;
  ASSERT_TRUE(crowd.others_wait());
  crowd.let_pass(kUnreadStreamNs - 2 * kTickNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.let_pass(4 * kTickNs);
  EXPECT_EQ(crowd.held(), 0u);
  crowd.run();
  EXPECT_EQ(crowd.ended(kResourceExhausted), 1u);
  EXPECT_EQ(crowd.down(), 0u);
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(GiveUp, MessagesOfAStreamThatIsNotReadStayWhileNobodyElseWaits) {
  Unread crowd;
  crowd.let_pass(10 * kUnreadStreamNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.clients[0].want_parts();
  crowd.run();
  EXPECT_EQ(crowd.ended(0), 1u);
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(GiveUp, EachMessageThatIsReadGivesItsStreamTimeAgain) {
  Unread crowd(3);
  for (std::size_t left = 3; left > 0; --left) {
    ASSERT_TRUE(crowd.others_wait());
    crowd.let_pass(kUnreadStreamNs - 2 * kTickNs);
    ASSERT_EQ(crowd.held(), left);
    const auto [session, call] = crowd.clients[0].held_back.front();
    crowd.clients[0].held_back.erase(crowd.clients[0].held_back.begin());
    crowd.clients[0].context->find(session)->want(call);
    crowd.run();
  }
  EXPECT_EQ(crowd.ended(0), 3u);
  EXPECT_EQ(crowd.finish(), Violations{});
}

/// A stopped client grants nothing, and its stream looks like one that is not read.
TEST(GiveUp, MessagesOfStreamsWhoseClientIsStoppedMakeRoomForOthersInTheEnd) {
  GiveUp crowd(1);
  crowd.ids.push_back(crowd.start(
      0, {.response_bytes = kBytes, .response_in_arena = true, .answer = Answer::later, .part = true}));
  ASSERT_TRUE(crowd.until([&] { return crowd.server.unanswered() != 0; }));
  crowd.stop(0);
  ASSERT_TRUE(crowd.server.answer());
  ASSERT_TRUE(crowd.waits(kArenaBytes / 8 * 7));
  crowd.let_pass(kUnreadStreamNs - 2 * kTickNs);
  EXPECT_EQ(crowd.held(), 1u);
  crowd.let_pass(4 * kTickNs);
  EXPECT_EQ(crowd.held(), 0u);
  crowd.resume_all();
  EXPECT_EQ(crowd.ended(kResourceExhausted), 1u);
  EXPECT_EQ(crowd.finish(), Violations{});
}

TEST(UnreadStreams, AreJudgedEachByItsOwnLastGrant) {
  UnreadStreams streams;
  EXPECT_EQ(streams.longest(5).ns, 0u);
  streams.asked(1, 10);
  streams.asked(2, 20);
  streams.asked(1, 30);
  EXPECT_EQ(streams.longest(40).stream, 1u);
  EXPECT_EQ(streams.longest(40).ns, 30u);
  streams.granted(1, 50);
  streams.ended(1);
  EXPECT_EQ(streams.longest(60).stream, 2u);
  EXPECT_EQ(streams.longest(60).ns, 40u);
  streams.ended(2);
  EXPECT_EQ(streams.longest(60).stream, 1u);
  EXPECT_EQ(streams.longest(60).ns, 10u);
  streams.ended(1);
  EXPECT_EQ(streams.longest(1'000).ns, 0u);
  // A stream that waits anew has not waited before.
  streams.asked(1, 1'000);
  EXPECT_EQ(streams.longest(1'001).ns, 1u);
}

}  // namespace
}  // namespace rdma_rpc::session::test

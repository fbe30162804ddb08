// Tests peers that are stopped while other calls wait for arena memory. Those calls get memory within
// seconds, from the peer that has been stopped for longest. Every session keeps its memory while there is
// enough for all calls.
#include <gtest/gtest.h>

#include "session/server/unread_streams.h"
#include "session/sides/client_group.h"

namespace rdma_rpc::session::test {
namespace {

namespace ctl = boundary::ctl;
using boundary::Processed;
using Violations = std::vector<std::string>;

constexpr std::uint32_t kResourceExhausted = 8;
constexpr std::uint64_t kTickNs = 2 * kHoldCheckNs;
constexpr std::size_t kBytes = 4 << 20;
constexpr std::size_t kArenaBytes = std::size_t{64} << 20;
/// Number of responses of kBytes that these sessions can hold at one time. The reserve of the other sessions
/// remains free.
constexpr std::size_t kStopped = 13;

PairOptions small_arena() {
  PairOptions options = ClientGroup::large_messages();
  options.context.arena.budget_bytes = kArenaBytes;
  return options;
}
/// Returns options of a fabric on which the CPU of the reader writes the bytes of READs, as on tcp.
PairOptions by_cpu() {
  PairOptions options = small_arena();
  options.sim.capabilities.reads_memory_late = true;
  return options;
}

/// Runs clients that stop one after another, and a last client that does not stop.
struct Reclaim : ClientGroup {
  explicit Reclaim(std::size_t stopped = kStopped, const PairOptions& options = small_arena())
      : ClientGroup(stopped + 1, options), count(stopped) {
    server.owned_answers = true;
  }

  std::uint64_t held() const { return server.context->arena().counters().blocks_leased; }
  /// Stops the clients when the server has their request, before the server asks them for memory for the
  /// response.
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
  /// Stops the clients when the server has begun to write their responses.
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
  /// Stops the clients while the server reads their requests.
  void stop_reading() {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t reads = server.context->flow().read_bytes();
      ids.push_back(start(i, {.request_bytes = kBytes, .request_in_arena = true}));
      ASSERT_TRUE(until([&] { return server.context->flow().read_bytes() != reads; }));
      stop(i);
    }
    ASSERT_EQ(held(), count);
  }

  /// Tries, as JS would, to allocate a response for the last client, or for the given one. Returns true when
  /// the response must wait for memory.
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
  /// Repeats this until there is memory. Returns how long that has taken, or an hour when there is no memory
  /// after a minute.
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
  /// Returns why the first session ended.
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

TEST(Reclaim, AnswersThatStoppedClientsGrantNoMemoryForMakeRoomForOthers) {
  Reclaim group;
  group.stop_asking();
  ASSERT_TRUE(group.waits());
  EXPECT_LE(group.gets_memory_ns(), kReclaimNs + kReclaimWaitNs + 2 * kTickNs);
  EXPECT_GE(group.held(), kStopped - 2) << "no more is reclaimed than is needed";
  group.resume_all();
  EXPECT_EQ(group.ended(0) + group.ended(kResourceExhausted), kStopped);
  EXPECT_GE(group.ended(kResourceExhausted), 1u);
  EXPECT_EQ(group.down(), 0u);
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(Reclaim, TheClientStoppedForLongestLosesItsAnswerFirst) {
  Reclaim group;
  group.stop_asking(kReclaimNs);
  ASSERT_TRUE(group.waits());
  EXPECT_LE(group.gets_memory_ns(), kReclaimWaitNs + 3 * kTickNs);
  group.resume_all();
  const std::size_t lost = group.ended(kResourceExhausted);
  EXPECT_GE(lost, 1u);
  for (std::size_t i = 0; i < lost; ++i)
    EXPECT_EQ(group.ledger.at(group.ids[i]).status, kResourceExhausted) << i;
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(Reclaim, NoSessionLosesMemoryWhileNoCallWaits) {
  Reclaim group;
  group.stop_asking();
  group.let_pass(10 * kReclaimNs);
  EXPECT_EQ(group.held(), kStopped);
  group.resume_all();
  EXPECT_EQ(group.ended(0), kStopped);
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(Reclaim, NoSessionLosesMemoryForACallThatWaitsForALimitOfItsOwnSession) {
  PairOptions options = small_arena();
  options.arena_max_bytes = 2 * kBytes;
  Reclaim group(4, options);
  group.stop_asking();
  const memory::OwnerId owner = group.server.session(group.at_server[4]).owner();
  const memory::BlockId own = group.server.context->alloc(2 * kBytes, memory::Use::response, owner);
  ASSERT_NE(own, memory::kNoBlock);
  ASSERT_TRUE(group.waits());
  group.let_pass(10 * kReclaimNs);
  EXPECT_EQ(group.held(), 5u);
  group.server.context->arena().release(own);
  group.resume_all();
  EXPECT_EQ(group.ended(0), 4u);
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(Reclaim, NoSessionLosesMemoryForCallsOfItsOwn) {
  Reclaim group(1);
  group.stop_asking();
  ASSERT_TRUE(group.waits(kArenaBytes / 8 * 7, 0));
  group.let_pass(10 * kReclaimNs);
  EXPECT_EQ(group.held(), 1u);
  // A call of another session waits, and memory is reclaimed for it.
  ASSERT_TRUE(group.waits(kArenaBytes / 8 * 7));
  group.let_pass(kReclaimWaitNs + kTickNs);
  EXPECT_EQ(group.held(), 0u);
  group.resume_all();
  EXPECT_EQ(group.finish(), Violations{});
}

/// Limits are measured while the server's thread runs. When the server itself was stopped, it first reads the
/// frames that have arrived.
TEST(Reclaim, TimeInWhichTheServerWasStoppedDoesNotCount) {
  Reclaim group;
  group.stop_asking();
  ASSERT_TRUE(group.waits());
  for (std::size_t i = 0; i < group.count; ++i) group.resume(i);
  group.world.advance(10 * kReclaimNs);
  group.run();
  EXPECT_EQ(group.ended(0), kStopped);
  EXPECT_EQ(group.finish(), Violations{});
}

/// A device may still read the memory of posted WRITEs, so only the end of the session frees that memory.
TEST(Reclaim, AnswersThatStoppedClientsDoNotAcceptEndTheirSessionsForOthers) {
  Reclaim group;
  group.stop_writing();
  ASSERT_TRUE(group.waits());
  EXPECT_LE(group.gets_memory_ns(), kReclaimNs + kReclaimWaitNs + 3 * kTickNs);
  EXPECT_GE(group.down(), 1u);
  EXPECT_LE(group.down(), 3u);
  EXPECT_NE(group.reason().find("other calls waited"), std::string::npos) << group.reason();
  group.resume_all();
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(Reclaim, RequestsOfStoppedClientsMakeRoomForOthersAndTheirSessionsGoOnWhereACpuReads) {
  RDMA_RPC_NEEDS_WINDOWS();  // in staging mode READs go to staging memory
  Reclaim group(11, by_cpu());
  group.stop_reading();
  const std::uint64_t honest = group.start(11, {.request_bytes = kBytes});
  group.let_pass(kReclaimNs + kReclaimWaitNs + 3 * kTickNs);
  EXPECT_TRUE(group.ledger.at(honest).answered());
  EXPECT_EQ(group.ledger.at(honest).status, 0u);
  group.resume_all();
  EXPECT_GE(group.ended(kResourceExhausted), 1u);
  for (const std::uint64_t id : group.ids) {
    if (group.ledger.at(id).status != kResourceExhausted) continue;
    EXPECT_EQ(group.ledger.at(id).processed, Processed::no) << id;
  }
  EXPECT_EQ(group.down(), 0u);
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(Reclaim, RequestsOfStoppedClientsEndTheirSessionsForOthersWhereADeviceReads) {
  Reclaim group(11);
  group.stop_reading();
  const std::uint64_t honest = group.start(11, {.request_bytes = kBytes});
  group.let_pass(kReclaimNs + kReclaimWaitNs + 3 * kTickNs);
  EXPECT_EQ(group.ledger.at(honest).status, 0u);
  EXPECT_TRUE(group.ledger.at(honest).answered());
  EXPECT_GE(group.down(), 1u);
  EXPECT_NE(group.reason().find("other calls waited"), std::string::npos) << group.reason();
  group.resume_all();
  EXPECT_EQ(group.finish(), Violations{});
}

// --- messages of streams, whose readers have no time limit

/// A stream with this number of large messages, whose reader reads none of them.
struct Unread : Reclaim {
  explicit Unread(std::size_t messages = 1) : Reclaim(1) {
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
  /// Size of a message, which exceeds the client's memory for messages ahead of the reader.
  static constexpr std::size_t kMessage = 9 << 20;
  static_assert(kMessage > kArenaBytes / 8);
  bool others_wait() { return waits(kArenaBytes / 8 * 7 - kMessage / 2); }
};

TEST(Reclaim, MessagesOfAStreamThatIsNotReadMakeRoomForOthersInTheEnd) {
  Unread group;
  ASSERT_TRUE(group.others_wait());
  group.let_pass(kUnreadStreamNs - 2 * kTickNs);
  EXPECT_EQ(group.held(), 1u);
  group.let_pass(4 * kTickNs);
  EXPECT_EQ(group.held(), 0u);
  group.run();
  EXPECT_EQ(group.ended(kResourceExhausted), 1u);
  EXPECT_EQ(group.down(), 0u);
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(Reclaim, MessagesOfAStreamThatIsNotReadStayWhileNoOtherCallWaits) {
  Unread group;
  group.let_pass(10 * kUnreadStreamNs);
  EXPECT_EQ(group.held(), 1u);
  group.clients[0].want_parts();
  group.run();
  EXPECT_EQ(group.ended(0), 1u);
  EXPECT_EQ(group.finish(), Violations{});
}

TEST(Reclaim, EachMessageThatIsReadGivesItsStreamTimeAgain) {
  Unread group(3);
  for (std::size_t left = 3; left > 0; --left) {
    ASSERT_TRUE(group.others_wait());
    group.let_pass(kUnreadStreamNs - 2 * kTickNs);
    ASSERT_EQ(group.held(), left);
    const auto [session, call] = group.clients[0].held_back.front();
    group.clients[0].held_back.erase(group.clients[0].held_back.begin());
    group.clients[0].context->find(session)->want(call);
    group.run();
  }
  EXPECT_EQ(group.ended(0), 3u);
  EXPECT_EQ(group.finish(), Violations{});
}

/// A stopped client grants no memory, so its stream looks like a stream that is not read.
TEST(Reclaim, MessagesOfStreamsWhoseClientIsStoppedMakeRoomForOthersInTheEnd) {
  Reclaim group(1);
  group.ids.push_back(group.start(
      0, {.response_bytes = kBytes, .response_in_arena = true, .answer = Answer::later, .part = true}));
  ASSERT_TRUE(group.until([&] { return group.server.unanswered() != 0; }));
  group.stop(0);
  ASSERT_TRUE(group.server.answer());
  ASSERT_TRUE(group.waits(kArenaBytes / 8 * 7));
  group.let_pass(kUnreadStreamNs - 2 * kTickNs);
  EXPECT_EQ(group.held(), 1u);
  group.let_pass(4 * kTickNs);
  EXPECT_EQ(group.held(), 0u);
  group.resume_all();
  EXPECT_EQ(group.ended(kResourceExhausted), 1u);
  EXPECT_EQ(group.finish(), Violations{});
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
  // When a stream waits again, its earlier waiting time does not count.
  streams.asked(1, 1'000);
  EXPECT_EQ(streams.longest(1'001).ns, 1u);
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests small calls beside large calls, and large calls beside each other. The tests check how much may be
// posted ahead of a small frame, how much may be fetched at once, which session moves data when, and that all
// limits are free again after any failure. Posted work is counted at the device, not in the session.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>

#include "session/sides/audit.h"
#include "session/sides/pair.h"
#include "verbs/devices/hooked_device.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;
using fabric::Opcode;

constexpr std::uint64_t kReceives = std::uint64_t{1} << 63;
constexpr std::uint64_t kLongNs = 20'000'000;

/// The work requests of a device's queue pairs that are posted but not completed.
class Meter {
 public:
  std::shared_ptr<const Hooks> hooks() {
    auto hooks = std::make_shared<Hooks>();
    hooks->before = [this](const fabric::SendWr& wr) { posted(wr); };
    return hooks;
  }
  void completed(const fabric::Wc& wc) {
    auto& posted = posted_[session_of(wc.wr_id)];
    while (!posted.empty() && posted.front().wr_id <= wc.wr_id) {
      of_kind(posted.front()) -= posted.front().bytes;
      posted.pop_front();
    }
  }
  /// Drops the work of a session that has ended, because its queue pair is flushed.
  void forget(std::uint32_t session) {
    for (const Work& work : posted_[session]) of_kind(work) -= work.bytes;
    posted_.erase(session);
  }
  std::uint64_t reads() const { return reads_; }

  std::uint64_t writes_ahead_most = 0;  ///< most bytes of WRITEs posted before a frame on its queue pair
  std::uint64_t reads_most = 0;         ///< most bytes of READs on all queue pairs together
  std::uint64_t frames_behind_writes = 0;

 private:
  struct Work {
    std::uint64_t wr_id;
    Opcode opcode;
    std::uint64_t bytes;
  };
  static std::uint32_t session_of(std::uint64_t wr_id) { return static_cast<std::uint32_t>(wr_id >> 32); }
  std::uint64_t& of_kind(const Work& work) {
    return work.opcode == Opcode::rdma_read ? reads_ : writes_[session_of(work.wr_id)];
  }
  void posted(const fabric::SendWr& wr) {
    std::uint64_t& ahead = writes_[session_of(wr.wr_id)];
    if (wr.opcode == Opcode::send || wr.opcode == Opcode::send_with_inv) {
      frames_behind_writes += ahead != 0 ? 1u : 0u;
      writes_ahead_most = std::max(writes_ahead_most, ahead);
    }
    if (wr.opcode != Opcode::rdma_read && wr.opcode != Opcode::rdma_write) return;
    Work work{wr.wr_id, wr.opcode, 0};
    for (const fabric::Sge& sge : wr.sges) work.bytes += sge.length;
    of_kind(work) += work.bytes;
    posted_[session_of(wr.wr_id)].push_back(work);
    reads_most = std::max(reads_most, reads_);
    // The limit is checked always, because a frame might be posted at any moment.
    writes_ahead_most = std::max(writes_ahead_most, ahead);
  }

  std::map<std::uint32_t, std::deque<Work>> posted_;
  std::map<std::uint32_t, std::uint64_t> writes_;
  std::uint64_t reads_ = 0;
};

/// A server with a meter, and clients with a session each.
struct Hosts {
  explicit Hosts(std::size_t sessions, PairOptions options = {})
      : world(options.sim),
        client(ledger, world.open_device("client"), with_room(options)),
        server(ledger, std::make_shared<HookedDevice>(world.open_device("server"), meter.hooks()),
               with_room(options)) {
    world.on_completion([this](const fabric::SimTrace& trace) {
      // Queue pairs are numbered from 1, and a session's client creates its queue pair before the server.
      const bool at_server = trace.completion.qp_num % 2 == 0;
      if (at_server && (trace.completion.wr_id & kReceives) == 0) meter.completed(trace.completion);
    });
    options.inflight_max = kInflight;
    options.max_message_bytes = kMessageMax;
    options.staging_bytes = 16 * kMessageMax;
    at_client.resize(sessions);
    at_server.resize(sessions);
    for (std::size_t i = 0; i < sessions; ++i) connect(client, at_client[i], server, at_server[i], options);
    run();
  }
  static ContextOptions with_room(const PairOptions& options) {
    ContextOptions context = options.context;
    context.arena = {.budget_bytes = std::size_t{512} << 20, .chunk_bytes = 1 << 20};
    context.mr_cache = {.max_bytes = std::size_t{512} << 20, .max_entries = 1024};
    return context;
  }
  std::uint64_t start(std::size_t session, const CallSpec& spec) {
    const std::uint64_t id = client.start(at_client[session], spec);
    EXPECT_NE(id, 0u);
    return id;
  }
  void step() {
    world.step();
    client.turn(world.now_ns());
    server.turn(world.now_ns());
  }
  void run() { EXPECT_TRUE(run_world(world, {&client, &server})); }
  template <class Done>
  void until(Done&& done) {
    for (int i = 0; i < 200'000 && !done(); ++i) step();
    EXPECT_TRUE(done());
  }
  /// Returns true when the data of the call has arrived at the handler or the caller.
  bool moved(Bulk kind, std::uint64_t id) {
    return kind == Bulk::read ? ledger.at(id).began != 0 : ended(id);
  }
  bool ended(std::uint64_t id) { return ledger.at(id).ended(); }
  std::uint64_t moved() const {
    return server.context->stats().bulk_read_bytes + server.context->stats().bulk_write_bytes;
  }
  Violations finish() {
    run();
    for (Side* side : {&client, &server}) {
      for (const std::uint32_t number : side == &client ? at_client : at_server) {
        if (Session* open = side->context->find(number)) open->close("the test is over");
      }
    }
    run();
    client.release_blocks();
    server.release_blocks();
    audit(client, "client");
    audit(server, "server");
    return ledger.violations();
  }

  static constexpr std::uint32_t kInflight = 12;
  static constexpr std::size_t kMessageMax = 16 << 20;
  Meter meter;
  Ledger ledger;
  fabric::SimWorld world;
  Side client, server;
  std::vector<std::uint32_t> at_client, at_server;
};

/// Returns a call that moves this number of bytes in one direction.
CallSpec moving(Bulk kind, std::size_t bytes) {
  if (kind == Bulk::read) return {.request_bytes = bytes, .request_in_arena = true};
  return {.response_bytes = bytes, .response_in_arena = true, .given_reply_buffer = bytes};
}

/// Number of bytes by which a member may be ahead of others: the bytes of a turn and of one more request.
constexpr std::uint64_t kSlackBytes = static_cast<std::uint64_t>(kQuantumBytes) + kChunkBytes;

class Fairness : public testing::TestWithParam<Bulk> {};
INSTANTIATE_TEST_SUITE_P(Of, Fairness, testing::Values(Bulk::read, Bulk::write), [](const auto& info) {
  return info.param == Bulk::read ? "Requests" : "Responses";
});

TEST(Writes, AheadOfASmallFrameHaveABound) {
  Hosts hosts(2);
  std::vector<std::uint64_t> large, small;
  for (int i = 0; i < 3; ++i) {
    for (const std::size_t session : {0u, 1u})
      large.push_back(hosts.start(session, moving(Bulk::write, 3 << 20)));
  }
  hosts.until([&] {
    if (small.empty() || hosts.ended(small.back())) small.push_back(hosts.start(0, {}));
    return std::all_of(large.begin(), large.end(), [&](std::uint64_t id) { return hosts.ended(id); });
  });
  EXPECT_LE(hosts.meter.writes_ahead_most, kWriteAheadBytes);
  EXPECT_GT(hosts.meter.writes_ahead_most, kWriteAheadBytes / 2) << "a smaller limit gains nothing";
  EXPECT_GT(hosts.meter.frames_behind_writes, 10u);
  EXPECT_GT(small.size(), 10u);
  EXPECT_EQ(hosts.finish(), Violations{});
}

TEST(Reads, OfAllSessionsTogetherHaveABound) {
  constexpr std::uint64_t kMost = 4 << 20;
  PairOptions options;
  options.context.read_bytes_max = kMost;
  Hosts hosts(4, options);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    for (std::size_t session = 0; session < 4; ++session)
      ids.push_back(hosts.start(session, moving(Bulk::read, 2 << 20)));
  }
  hosts.run();
  for (const std::uint64_t id : ids) EXPECT_TRUE(hosts.ledger.at(id).answered());
  EXPECT_LE(hosts.meter.reads_most, kMost + 4 * kReadLeastBytes) << "each session may have one in any case";
  EXPECT_GT(hosts.meter.reads_most, kMost - 2 * kChunkBytes) << "the limit is used";
  EXPECT_EQ(hosts.finish(), Violations{});
}

TEST(Reads, LargerThanTheBoundGoWithOneShortOneOfEachOtherSession) {
  PairOptions options;
  options.context.read_bytes_max = 1;
  Hosts hosts(2, options);
  const std::uint64_t a = hosts.start(0, moving(Bulk::read, 2 << 20)),
                      b = hosts.start(1, moving(Bulk::read, 2 << 20));
  hosts.run();
  EXPECT_TRUE(hosts.ledger.at(a).answered());
  EXPECT_TRUE(hosts.ledger.at(b).answered());
  EXPECT_EQ(hosts.meter.reads_most, kChunkBytes + kReadLeastBytes);
  EXPECT_EQ(hosts.finish(), Violations{});
}

TEST(Reads, OfPeersThatDoNotAnswerLeaveRoomForOthers) {
  constexpr std::uint64_t kMost = 4 << 20, kHeld = kMost / 2 + kMost / 4;  // a half, and half of the rest
  PairOptions options;
  options.context.read_bytes_max = kMost;
  Hosts hosts(3, options);
  for (const std::size_t silent : {0u, 1u}) {
    hosts.world.delay(static_cast<std::uint32_t>(2 * silent + 2), 100 * kLongNs);
    for (int i = 0; i < 2; ++i) hosts.start(silent, moving(Bulk::read, 8 << 20));
  }
  hosts.until([&] { return hosts.meter.reads() >= kHeld; });
  const std::uint64_t id = hosts.start(2, moving(Bulk::read, 4 << 20));
  hosts.until([&] { return hosts.ended(id) || hosts.world.now_ns() > kLongNs; });
  EXPECT_TRUE(hosts.ledger.at(id).answered());
  EXPECT_EQ(hosts.meter.reads(), kHeld) << "READs of silent peers must leave room for others";
  EXPECT_EQ(hosts.finish(), Violations{});
}

/// One of the calls is short. The short call ends when each of the others has moved about as many bytes.
TEST_P(Fairness, CallsOfASessionHaveEqualShares) {
  constexpr std::size_t kLong = 16 << 20, kShort = 4 << 20, kLongs = 6;
  Hosts hosts(1);
  std::vector<std::uint64_t> longs;
  for (std::size_t i = 0; i < kLongs; ++i) longs.push_back(hosts.start(0, moving(GetParam(), kLong)));
  const std::uint64_t id = hosts.start(0, moving(GetParam(), kShort));
  hosts.until([&] { return hosts.moved(GetParam(), id); });
  EXPECT_LT(hosts.moved(), (kLongs + 1) * (kShort + kSlackBytes) + kReadBytesMax);
  for (const std::uint64_t each : longs) EXPECT_FALSE(hosts.ended(each));
  EXPECT_EQ(hosts.finish(), Violations{});
}

/// Sessions have equal shares, independent of their numbers of calls.
TEST_P(Fairness, SessionsHaveEqualShares) {
  constexpr std::size_t kLong = 16 << 20, kShort = 4 << 20, kCalls = 10;
  constexpr std::uint64_t kTurnsUntilHeard = 2;  // turns of the server until a caller has a response
  PairOptions options = immediate();             // so that calls share only the limit of a turn
  options.sim.capabilities.copies_when_posted = true;
  Hosts hosts(2, options);
  for (std::size_t i = 0; i < kCalls; ++i) hosts.start(0, moving(GetParam(), kLong));
  const std::uint64_t id = hosts.start(1, moving(GetParam(), kShort));
  hosts.until([&] { return hosts.moved(GetParam(), id); });
  EXPECT_LT(hosts.moved(), 2 * (kShort + kSlackBytes) + kTurnsUntilHeard * kCopiedBytesPerTurn);
  EXPECT_EQ(hosts.finish(), Violations{});
}

/// A call whose READs have waited is not overtaken by calls that started later.
TEST_P(Fairness, NothingStarvesWhileOthersKeepComing) {
  Hosts hosts(2);
  const std::uint64_t id = hosts.start(0, moving(GetParam(), 4 << 20));
  std::array<std::vector<std::uint64_t>, 2> others;
  hosts.until([&] {
    for (const std::size_t session : {0u, 1u}) {
      auto& own = others[session];
      const auto open =
          std::count_if(own.begin(), own.end(), [&](std::uint64_t each) { return !hosts.ended(each); });
      if (open < 4) own.push_back(hosts.start(session, moving(GetParam(), 256 << 10)));
    }
    return hosts.ended(id);
  });
  EXPECT_LT(hosts.moved(), 16 * (std::uint64_t{4} << 20));
  EXPECT_EQ(hosts.finish(), Violations{});
}

// --- where posting copies the data

PairOptions copying() {
  PairOptions options = immediate();
  options.sim.capabilities.copies_when_posted = true;
  return options;
}

TEST_P(Fairness, ATurnOfTheLoopCopiesNoMoreThanItsSlice) {
  Hosts hosts(3, copying());
  for (int i = 0; i < 2; ++i) {
    for (std::size_t session = 0; session < 3; ++session) hosts.start(session, moving(GetParam(), 4 << 20));
  }
  hosts.client.turn(hosts.world.now_ns());
  std::uint64_t most = 0;
  while (hosts.ledger.open() != 0) {
    const std::uint64_t before = hosts.moved();
    hosts.server.turn(hosts.world.now_ns());
    most = std::max(most, hosts.moved() - before);
    hosts.client.turn(hosts.world.now_ns());
  }
  EXPECT_LE(most, kCopiedBytesPerTurn);
  EXPECT_GT(most, kCopiedBytesPerTurn / 2);
  EXPECT_EQ(hosts.finish(), Violations{});
}

TEST_P(Fairness, SmallCallsAreAnsweredBetweenSlicesThatAreSmallThen) {
  Hosts hosts(2, copying());
  const std::uint64_t id = hosts.start(0, moving(GetParam(), 8 << 20));
  hosts.client.turn(hosts.world.now_ns());
  for (std::size_t i = 0; i < 40; ++i) {
    const std::uint64_t small = hosts.start(i % 2, {});  // in the same session, and in another session
    hosts.client.turn(hosts.world.now_ns());
    const std::uint64_t before = hosts.moved();
    hosts.server.turn(hosts.world.now_ns());
    if (i > 0) {
      EXPECT_LE(hosts.moved() - before, kSliceBytes);
    }
    hosts.client.turn(hosts.world.now_ns());
    EXPECT_TRUE(hosts.ended(small));
  }
  EXPECT_FALSE(hosts.ended(id));
  EXPECT_EQ(hosts.finish(), Violations{});
}

TEST(Copies, OfBothKindsShareTheTurns) {
  constexpr std::size_t kLong = 4 * kCopiedBytesPerTurn;
  Hosts hosts(1, copying());
  for (const Bulk kind : {Bulk::write, Bulk::read}) hosts.start(0, moving(kind, kLong));
  hosts.client.turn(hosts.world.now_ns());
  const Stats& stats = hosts.server.context->stats();
  int together = 0, reads_still = 0, writes_still = 0, most_still = 0;
  while (stats.bulk_read_bytes < kLong && stats.bulk_write_bytes < kLong) {
    const std::uint64_t read = stats.bulk_read_bytes, written = stats.bulk_write_bytes;
    hosts.server.turn(hosts.world.now_ns());
    hosts.client.turn(hosts.world.now_ns());
    if (stats.bulk_write_bytes == 0) continue;  // no response has begun yet
    ++together;
    reads_still = stats.bulk_read_bytes == read ? reads_still + 1 : 0;
    writes_still = stats.bulk_write_bytes == written ? writes_still + 1 : 0;
    most_still = std::max({most_still, reads_still, writes_still});
  }
  EXPECT_GT(together, 2) << "both kinds were hardly ever under way together";
  EXPECT_LE(most_still, 1) << "consecutive turns in which only the other kind moved";
  EXPECT_EQ(hosts.finish(), Violations{});
}

// --- after failures

/// A random load of three sessions with cancels, faults and ends. The limits hold at every step, and all
/// resources are returned. (finish() checks the resources.)
TEST(FairnessSeeds, BoundsHoldAndBudgetsComeBack) {
  constexpr std::uint64_t kMost = 600 << 10;
  std::size_t answered = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto any = [&](std::uint64_t n) { return random() % n; };
    const bool copies = seed % 4 == 0;
    PairOptions options = seeded(seed, copies ? copying() : PairOptions{});
    options.context.read_bytes_max = kMost;
    Hosts hosts(3, options);
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 60; ++i) {
      const std::size_t session = any(3);
      constexpr std::size_t sizes[] = {32, 5'000, 200'000, 1'000'000};
      if (any(3) != 0 && hosts.client.context->find(hosts.at_client[session]) != nullptr) {
        const CallSpec spec{.request_bytes = sizes[any(4)],
                            .request_gather_entries = 1 + any(4),
                            .request_in_arena = any(2) == 0,
                            .response_bytes = sizes[any(4)],
                            .response_gather_entries = 1 + any(4),
                            .answer = any(4) == 0 ? Answer::later : Answer::now};
        if (const std::uint64_t id = hosts.client.start(hosts.at_client[session], spec)) ids.push_back(id);
      }
      if (!ids.empty() && any(4) == 0) hosts.client.cancel(ids[any(ids.size())]);
      if (hosts.server.unanswered() != 0 && any(2) == 0) hosts.server.answer();
      if (any(60) == 0) hosts.world.fail({.nth = 1 + any(20), .status = fabric::WcStatus::general_err});
      if (any(90) == 0) {
        if (Session* open = hosts.server.context->find(hosts.at_server[any(3)])) open->close("a random end");
      }
      for (std::uint64_t steps = any(6); steps > 0; --steps) hosts.step();
      EXPECT_LE(hosts.server.context->flow().read_bytes(), kMost + 3 * kReadLeastBytes);
    }
    for (int round = 0; round < 100 && hosts.ledger.open() != 0; ++round) {
      hosts.run();
      while (hosts.server.answer()) {
      }
    }
    EXPECT_LE(hosts.meter.reads_most, kMost + 3 * kReadLeastBytes);
    // A copy is complete when it is posted.
    EXPECT_LE(hosts.meter.writes_ahead_most, copies ? kCopiedBytesPerTurn : kWriteAheadBytes);
    for (const std::uint64_t id : ids) answered += hosts.ledger.at(id).answered() ? 1u : 0u;
    EXPECT_EQ(hosts.finish(), Violations{});
    if (HasFailure()) return;
  }
  EXPECT_GT(answered, 500u);  // most calls must not have been hit by a failure
}

}  // namespace
}  // namespace rdma_rpc::session::test

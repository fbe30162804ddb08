// Tests scheduled mode: the clock, and equal traces for equal seeds. Every outcome that RC leaves open must
// happen for some seed, and outcomes that RC forbids must never happen.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fabric/sim/pair.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint64_t kSeeds = 200;

SimOptions seeded(std::uint64_t seed) { return {.seed = seed, .mode = SimMode::scheduled}; }

// Executes a few hundred requests on both sides, chosen by `script`, under `seed`. Returns every completion
// as text.
std::vector<std::string> trace(std::uint64_t seed, std::uint32_t script) {
  SimPair pair(seeded(seed));
  std::vector<std::string> lines;
  pair.world.on_completion([&](const SimTrace& event) {
    lines.push_back(std::to_string(event.time_ns) + " qp " + std::to_string(event.completion.qp_num) +
                    " wr " + std::to_string(event.completion.wr_id) + " " +
                    to_string(event.completion.status));
  });
  std::mt19937 random(script);
  for (std::uint64_t i = 0; i < 200; ++i) {
    SimPair::End& from = random() % 2 == 0 ? pair.client : pair.server;
    SimPair::End& to = &from == &pair.client ? pair.server : pair.client;
    const Opcode opcodes[] = {Opcode::send, Opcode::rdma_read, Opcode::rdma_write};
    pair.receive(to, 1000 + i);
    pair.post(from, opcodes[random() % 3], i);
    if (random() % 4 == 0) pair.world.advance(random() % 20'000);
    if (random() % 8 == 0) {
      SimPair::poll(pair.client);
      SimPair::poll(pair.server);
    }
  }
  pair.world.run_until_idle();
  return lines;
}

TEST(SimSchedule, TheSameSeedGivesTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto first = trace(seed, 5);
    EXPECT_GT(first.size(), 100u);
    EXPECT_EQ(first, trace(seed, 5));
  }
}

TEST(SimSchedule, AnotherSeedGivesAnotherTrace) { EXPECT_NE(trace(1, 5), trace(2, 5)); }

TEST(SimSchedule, NothingHappensUntilTheClockMoves) {
  SimPair pair(seeded(1));
  pair.receive(pair.server, 1);
  pair.post(pair.client, Opcode::send, 2);
  EXPECT_TRUE(SimPair::poll(pair.server).empty());
  pair.world.advance(999);
  EXPECT_TRUE(SimPair::poll(pair.server).empty()) << "latency_min_ns is 1000";
  pair.world.advance(10'000);
  EXPECT_EQ(SimPair::poll(pair.server).size(), 1u);
  EXPECT_EQ(pair.world.now_ns(), 10'999u);
  EXPECT_EQ(SimPair::poll(pair.client).size(), 1u);
  EXPECT_FALSE(pair.world.step()) << "nothing is left to happen";
}

TEST(SimSchedule, AMessageArrivesBeforeItsSendersCompletion) {
  SimPair pair(seeded(3));
  pair.receive(pair.server, 1);
  pair.post(pair.client, Opcode::send, 2);
  while (SimPair::poll(pair.server).empty()) ASSERT_TRUE(pair.world.step());
  EXPECT_TRUE(SimPair::poll(pair.client).empty());
  EXPECT_EQ(pair.finish(pair.client).size(), 1u);
}

// The server's memory changes as soon as it has the SEND. Returns whether the READ before that SEND still
// sees the old bytes.
bool read_sees_old_bytes(std::uint64_t seed, bool fence) {
  SimPair pair(seeded(seed));
  std::memset(pair.server.host->data(), 1, 64);
  pair.receive(pair.server, 1);
  pair.post(pair.client, Opcode::rdma_read, 2);
  pair.post(pair.client, Opcode::send, 3, fence);
  while (SimPair::poll(pair.server).empty()) pair.world.step();
  std::memset(pair.server.host->data(), 2, 64);
  EXPECT_EQ(pair.finish(pair.client).size(), 2u);
  return pair.client.host->data()[0] == std::byte{1};
}

TEST(SimSchedule, OnlyAFenceKeepsASendBehindARead) {
  std::uint64_t late = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (!read_sees_old_bytes(seed, false)) ++late;
    EXPECT_TRUE(read_sees_old_bytes(seed, true)) << "seed " << seed;
  }
  EXPECT_GT(late, kSeeds / 10);
  EXPECT_LT(late, kSeeds);
}

TEST(SimSchedule, ReadsAreAnsweredInOrderUpToTheLimit) {
  constexpr std::uint64_t kReads = 8;
  std::uint64_t most_at_once = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimOptions options = seeded(seed);
    options.capabilities.max_rd_atomic = 3;
    SimPair pair(options);
    std::memset(pair.server.host->data(), 1, 64);
    for (std::uint64_t i = 0; i < kReads; ++i) {
      const Sge sink = pair.client.sge(i * 64);
      const SendWr wr =
          request(Opcode::rdma_read, i, {&sink, 1}, pair.server.region->addr(), pair.server.region->rkey());
      ASSERT_EQ(pair.client.qp->post_send({&wr, 1}), 1u);
    }
    for (std::uint64_t landed = 0; landed < kReads;) {
      ASSERT_TRUE(pair.world.step());
      const std::byte* sinks = pair.client.host->data();
      while (landed < kReads && sinks[landed * 64] == std::byte{1}) ++landed;
      for (std::uint64_t i = landed; i < kReads; ++i) {
        ASSERT_EQ(sinks[i * 64], std::byte{0})
            << "seed " << seed << ": READ " << i << " overtook one before it";
      }
      most_at_once = std::max(most_at_once, pair.world.counters().of(Opcode::rdma_read) - landed);
    }
  }
  EXPECT_EQ(most_at_once, 3u);
}

TEST(SimSchedule, QueuePairsOvertakeOneAnotherButNotThemselves) {
  bool overtaken = false;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimPair pair(seeded(seed));
    const auto second = pair.client.device->create_qp(*pair.client.cq, {}, nullptr);
    const auto other = pair.server.device->create_qp(*pair.server.cq, {}, nullptr);
    ASSERT_EQ(second->connect(other->local_address()), "");
    ASSERT_EQ(other->connect(second->local_address()), "");
    for (std::uint64_t i = 0; i < 8; ++i) {
      const SendWr wr = request(Opcode::rdma_write, i, {});
      (i % 2 == 0 ? pair.client.qp : second)->post_send({&wr, 1});
    }
    std::uint64_t last[2] = {}, highest = 0;
    for (const Wc& wc : pair.finish(pair.client)) {
      std::uint64_t& mine = last[wc.wr_id % 2];
      EXPECT_GE(wc.wr_id, mine) << "seed " << seed;
      mine = wc.wr_id;
      overtaken = overtaken || wc.wr_id < highest;
      highest = std::max(highest, wc.wr_id);
    }
  }
  EXPECT_TRUE(overtaken);
}

TEST(SimSchedule, ADelayedQueuePairComesLater) {
  SimPair pair(seeded(1));
  pair.world.delay(pair.client.qp->qp_num(), 1'000'000);
  pair.receive(pair.server, 1);
  pair.post(pair.client, Opcode::send, 2);
  pair.world.advance(900'000);
  EXPECT_TRUE(SimPair::poll(pair.server).empty());
  pair.world.advance(200'000);
  EXPECT_EQ(SimPair::poll(pair.server).size(), 1u);
}

TEST(SimSchedule, BytesMayLandBetweenToErrorAndTheFlushAndNeverAfter) {
  std::uint64_t landed = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimPair pair(seeded(seed));
    // The client's own READ and the server's WRITE have the same destination in the client's memory.
    std::memset(pair.server.host->data(), 0x55, 64);
    pair.receive(pair.client, 1);
    pair.post(pair.client, Opcode::rdma_read, 2);
    pair.post(pair.server, Opcode::rdma_write, 3);
    pair.world.advance(3'000);
    pair.client.qp->to_error();
    std::memset(pair.client.host->data(), 0, SimPair::kBytes);
    for (std::vector<Wc> wcs; wcs.empty() || wcs.back().status != WcStatus::wr_flush_err;) {
      ASSERT_TRUE(pair.world.step());
      wcs = SimPair::poll(pair.client);
    }
    if (pair.client.host->data()[0] == std::byte{0x55}) ++landed;
    std::memset(pair.client.host->data(), 0, SimPair::kBytes);
    pair.world.run_until_idle();
    EXPECT_EQ(pair.client.host->data()[0], std::byte{0}) << "seed " << seed;
  }
  EXPECT_GT(landed, kSeeds / 20) << "the trap must be there for sessions to fall into";
}

TEST(SimSchedule, AReadUnderWayFailsWhenItsWindowIsInvalidated) {
  std::uint64_t failed = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimPair pair(seeded(seed));
    const auto window = pair.client.device->alloc_mw();
    SendWr bind = request(Opcode::bind_mw, 1, {});
    bind.bind = {window.get(), pair.client.region.get(), pair.client.region->addr(), 64, access_remote_read};
    pair.client.qp->post_send({&bind, 1});
    ASSERT_EQ(pair.finish(pair.client).size(), 1u);
    const Sge sink = pair.server.sge();
    const SendWr read = request(Opcode::rdma_read, 2, {&sink, 1}, pair.client.region->addr(), window->rkey());
    pair.server.qp->post_send({&read, 1});
    pair.server.qp->post_send({&read, 1});
    pair.world.advance(4'000);
    SendWr invalidate = request(Opcode::local_inv, 3, {});
    invalidate.invalidate_rkey = window->rkey();
    pair.client.qp->post_send({&invalidate, 1});
    while (SimPair::poll(pair.client).empty()) ASSERT_TRUE(pair.world.step());
    std::memset(pair.client.host->data(), 0x55, 64);
    const auto done = pair.finish(pair.server);
    ASSERT_EQ(done.size(), 2u);
    if (done[0].status == WcStatus::rem_access_err) ++failed;
    EXPECT_EQ(pair.server.host->data()[0], std::byte{0})
        << "seed " << seed << ": read after the invalidation";
  }
  EXPECT_GT(failed, kSeeds / 20);
  EXPECT_LT(failed, kSeeds);
}

TEST(SimSchedule, ASilentPeerBecomesAnErrorAfterTheRetryTimeout) {
  SimPair pair(seeded(1));
  pair.world.kill(*pair.server.device);
  pair.post(pair.client, Opcode::rdma_write, 1);
  pair.world.advance(1'000'000);
  EXPECT_TRUE(SimPair::poll(pair.client).empty());
  pair.world.advance(10'000);
  const auto done = SimPair::poll(pair.client);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, WcStatus::retry_exc_err);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

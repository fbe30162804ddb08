// Runs litmus tests of the published model of RDMA on TSO hosts, on the simulated fabric. Each test consists
// of a few requests and stores. Each test is tried with many seeds, while the other side reads its memory
// after every step. Outcomes that the model forbids must never occur. Outcomes that it allows, and that
// programs therefore have to expect, must occur for some seed.
#include <array>
#include <functional>
#include <set>

#include "fabric/sim/pair.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint64_t kSeeds = 200;

class Litmus {
 public:
  explicit Litmus(std::uint64_t seed) : pair_(options(seed)), seed_(seed) {
    region_ = pair_.server.device->reg_mr(pair_.server.host->data(), SimPair::kBytes,
                                          kAllRights | access_remote_atomic, nullptr);
  }
  /// here() returns word `word` of the client's memory; there() returns the same word of the server's memory.
  volatile std::uint64_t& here(int word) { return at(pair_.client, word); }
  volatile std::uint64_t& there(int word) { return at(pair_.server, word); }

  void write(int to, int from) { post(Opcode::rdma_write, to, from); }
  void read(int to, int from, bool fence = false) { post(Opcode::rdma_read, from, to, fence); }
  void add(int to, int result, std::uint64_t value) {
    post(Opcode::atomic_fetch_and_add, to, result, false, value);
  }
  void fenced_write(int to, int from) { post(Opcode::rdma_write, to, from, true); }
  /// Runs until no event is left. Calls `look` after each step.
  void run(const std::function<void()>& look = [] {}) {
    while (pair_.world.step()) look();
    for (const Wc& wc : SimPair::poll(pair_.client)) EXPECT_EQ(wc.status, WcStatus::success);
  }
  /// Runs until no event is left, and stores after a number of steps that the seed determines.
  void run_and_store(volatile std::uint64_t& word, std::uint64_t value) {
    std::uint64_t steps = seed_ % 10;
    bool stored = false;
    run([&] {
      if (steps-- != 0) return;
      word = value;
      stored = true;
    });
    if (!stored) word = value;
  }

 private:
  static SimOptions options(std::uint64_t seed) {
    SimOptions options;
    options.mode = SimMode::scheduled;
    options.seed = seed;
    return options;
  }
  static volatile std::uint64_t& at(SimPair::End& end, int word) {
    return reinterpret_cast<volatile std::uint64_t*>(end.host->data())[word];
  }
  void post(Opcode opcode, int remote, int local, bool fence = false, std::uint64_t value = 0) {
    const Sge sge = pair_.client.sge(static_cast<std::uint64_t>(local) * 8, 8);
    SendWr wr = request(opcode, 1, {&sge, 1}, region_->addr() + static_cast<std::uint64_t>(remote) * 8,
                        region_->rkey());
    wr.fence = fence;
    if (opcode == Opcode::atomic_fetch_and_add) wr.atomic = {value, 0};
    ASSERT_EQ(pair_.client.qp->post_send({&wr, 1}), 1u);
  }

  SimPair pair_;
  const std::uint64_t seed_;
  std::unique_ptr<MemoryRegion> region_;
};

enum Words { x, y, a, b };

/// Returns the outcomes of one test over all seeds.
std::set<std::uint64_t> outcomes(const std::function<std::uint64_t(Litmus&)>& test) {
  std::set<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Litmus litmus(seed);
    all.insert(test(litmus));
  }
  return all;
}

TEST(RdmaTso, WritesOfOneQueuePairAreSeenInOrder) {
  const auto seen = outcomes([](Litmus& t) -> std::uint64_t {
    bool wrong = false;
    t.here(a) = 1;
    t.here(b) = 1;
    t.write(x, a);
    t.write(y, b);
    t.run([&] { wrong = wrong || (t.there(y) == 1 && t.there(x) == 0); });
    return wrong ? 1 : 0;
  });
  EXPECT_EQ(seen, std::set<std::uint64_t>{0});
}

TEST(RdmaTso, AReadSeesTheWriteBeforeIt) {
  const auto seen = outcomes([](Litmus& t) -> std::uint64_t {
    t.here(a) = 1;
    t.write(x, a);
    t.read(b, x);
    t.run();
    return t.here(b);
  });
  EXPECT_EQ(seen, std::set<std::uint64_t>{1});
}

TEST(RdmaTso, AReadMaySeeWhatAWriteBehindItHasStored) {
  const auto read_then_write = [](bool fence) {
    return outcomes([fence](Litmus& t) -> std::uint64_t {
      t.here(a) = 1;
      t.read(b, x);
      if (fence) {
        t.fenced_write(x, a);
      } else {
        t.write(x, a);
      }
      t.run();
      return t.here(b);
    });
  };
  EXPECT_EQ(read_then_write(false), (std::set<std::uint64_t>{0, 1}));
  EXPECT_EQ(read_then_write(true), std::set<std::uint64_t>{0}) << "a fence forbids it";
}

TEST(RdmaTso, AWriteMayTakeAStoreThatCameAfterItsPost) {
  const auto seen = outcomes([](Litmus& t) -> std::uint64_t {
    t.here(a) = 1;
    t.write(x, a);
    t.run_and_store(t.here(a), 2);
    return t.there(x);
  });
  EXPECT_EQ(seen, (std::set<std::uint64_t>{1, 2}))
      << "which is why a buffer is the fabric's until its completion";
}

TEST(RdmaTso, AnAtomicKeepsItsPlaceAmongReads) {
  const auto seen = outcomes([](Litmus& t) -> std::uint64_t {
    t.read(a, x);
    t.add(x, b, 1);
    t.read(y, x);
    t.run();
    return t.here(a) * 100 + t.here(b) * 10 + t.here(y);
  });
  EXPECT_EQ(seen, std::set<std::uint64_t>{1});
}

TEST(RdmaTso, RemoteAtomicsLoseNoUpdateOfAnotherOne) {
  const auto seen = outcomes([](Litmus& t) -> std::uint64_t {
    for (int i = 0; i < 8; ++i) t.add(x, a, 1);
    t.run();
    return t.there(x);
  });
  EXPECT_EQ(seen, std::set<std::uint64_t>{8});
}

/// A handler writes the same word with its CPU. The store of the handler may be lost, or it may come between
/// two atomics.
TEST(RdmaTso, AStoreOfTheOwnersCpuMayBeLostToARemoteAtomic) {
  const auto seen = outcomes([](Litmus& t) -> std::uint64_t {
    t.add(x, a, 1);
    t.run_and_store(t.there(x), 100);
    return t.there(x);
  });
  EXPECT_TRUE(seen.contains(1)) << "in no seed was the store lost";
  EXPECT_TRUE(seen.contains(100) && seen.contains(101)) << "it came before or behind the atomic";
  for (const std::uint64_t value : seen) EXPECT_TRUE(value == 1 || value == 100 || value == 101) << value;
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

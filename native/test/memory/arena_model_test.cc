// Compares the arena with a model, for several seeds: random alloc, retain, release, stale release and find.
// Every leased block has canaries at both ends, so that two leases of the same bytes are detected at once.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "fake_device.h"
#include "memory/arena.h"

namespace rdma_rpc::memory {
namespace {

struct Lease {
  std::byte* data;
  std::size_t capacity;
  int references;
  std::uint64_t canary;
};

class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed) {
    arena_.on_retire([this](BlockId id) { EXPECT_FALSE(leases_.contains(id)) << "retired while leased"; });
  }

  void step() {
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return alloc();
      case 4:
        return retain();
      case 5:
      case 6:
      case 7:
        return release();
      case 8:
        return release_stale();
      default:
        return find();
    }
  }

  void release_all() {
    while (!leases_.empty()) release();
  }

  void check_counters() {
    const ArenaCounters counters = arena_.counters();
    std::uint64_t bytes = 0;
    for (const auto& [id, lease] : leases_) bytes += lease.capacity;
    ASSERT_EQ(counters.blocks_leased, leases_.size());
    ASSERT_EQ(counters.bytes_leased, bytes);
    ASSERT_EQ(counters.bytes_reserved, device_.memory_bytes);
    ASSERT_EQ(device_.registered_bytes, device_.memory_bytes);
    ASSERT_LE(counters.bytes_reserved, kBudget);
    ASSERT_EQ(counters.stale, stale_);
  }

  ArenaCounters counters() const { return arena_.counters(); }

 private:
  static constexpr std::size_t kBudget = std::size_t{24} << 20;

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  auto pick() { return std::next(leases_.begin(), static_cast<std::ptrdiff_t>(below(leases_.size()))); }

  void check_canary(const Lease& lease) {
    std::uint64_t head = 0, tail = 0;
    std::memcpy(&head, lease.data, sizeof head);
    std::memcpy(&tail, lease.data + lease.capacity - sizeof tail, sizeof tail);
    ASSERT_EQ(head, lease.canary);
    ASSERT_EQ(tail, lease.canary);
  }

  void alloc() {
    // Sizes of every magnitude up to 8 MiB.
    const std::size_t bytes = below(std::uint64_t{1} << (10 + below(14)));
    const BlockId id = arena_.alloc(bytes);
    if (id == kNoBlock) return;
    ASSERT_FALSE(leases_.contains(id));
    const Block& block = arena_.at(id);
    ASSERT_GE(block.capacity, bytes);
    const Lease lease{block.data, block.capacity, 1, random_()};
    std::memcpy(lease.data, &lease.canary, sizeof lease.canary);
    std::memcpy(lease.data + lease.capacity - sizeof lease.canary, &lease.canary, sizeof lease.canary);
    leases_.emplace(id, lease);
  }

  void retain() {
    if (leases_.empty()) return;
    const auto at = pick();
    arena_.retain(at->first);
    ++at->second.references;
  }

  void release() {
    if (leases_.empty()) return;
    const auto at = pick();
    check_canary(at->second);
    arena_.release(at->first);
    ASSERT_EQ(arena_.live(at->first), --at->second.references > 0);
    if (at->second.references > 0) return;
    dead_ = at->first;
    leases_.erase(at);
  }

  void release_stale() {
    if (leases_.contains(dead_)) return;
    arena_.release(dead_);
    ++stale_;
  }

  void find() {
    if (leases_.empty()) return;
    const auto at = pick();
    const Lease& lease = at->second;
    const std::size_t offset = below(lease.capacity), bytes = below(lease.capacity - offset + 1);
    ASSERT_EQ(arena_.find(lease.data + offset, bytes), at->first);
    ASSERT_NE(arena_.find(lease.data + offset, lease.capacity - offset + 1), at->first);
  }

  FakeDevice device_;
  Arena arena_{device_, {.budget_bytes = kBudget, .chunk_bytes = std::size_t{1} << 20}};
  std::mt19937_64 random_;
  std::map<BlockId, Lease> leases_;
  BlockId dead_ = kNoBlock;
  std::uint64_t stale_ = 0;
};

class ArenaModel : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ArenaModel, AgreesWithTheModel) {
  Model model(GetParam());
  for (int step = 0; step < 20'000; ++step) {
    model.step();
    if (step % 64 == 0) model.check_counters();
    ASSERT_FALSE(HasFatalFailure()) << "seed " << GetParam() << ", step " << step;
  }
  model.release_all();
  model.check_counters();
  EXPECT_GT(model.counters().refused, 0u) << "the budget was never reached: the test is too easy";
  EXPECT_GT(model.counters().trimmed_chunks, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArenaModel, testing::Values(1, 2, 3, 20'26, 0xfeed));

}  // namespace
}  // namespace rdma_rpc::memory

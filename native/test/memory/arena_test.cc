// Tests the specification of the arena: the properties of a block, when memory is reused, reserved and
// returned, and the result when a caller counts references wrongly.
#include "memory/arena.h"

#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <vector>

#include "fake_device.h"

namespace rdma_rpc::memory {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

struct SizeCase {
  std::size_t asked, capacity;
  friend void PrintTo(const SizeCase& c, std::ostream* out) { *out << c.asked << " bytes"; }
};

class ArenaSizes : public testing::TestWithParam<SizeCase> {};

TEST_P(ArenaSizes, RoundsUpToItsClass) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  const BlockId id = arena.alloc(GetParam().asked);
  ASSERT_NE(id, kNoBlock);
  EXPECT_EQ(arena.at(id).capacity, GetParam().capacity);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.at(id).data) % 4096, 0u);
}

INSTANTIATE_TEST_SUITE_P(Table, ArenaSizes,
                         testing::Values(SizeCase{0, 4 * KiB}, SizeCase{1, 4 * KiB},
                                         SizeCase{4 * KiB, 4 * KiB}, SizeCase{4 * KiB + 1, 8 * KiB},
                                         SizeCase{8 * KiB, 8 * KiB}, SizeCase{9 * KiB, 16 * KiB},
                                         SizeCase{512 * KiB + 1, MiB}, SizeCase{MiB, MiB},
                                         SizeCase{MiB + 1, 1280 * KiB}, SizeCase{1280 * KiB, 1280 * KiB},
                                         SizeCase{1280 * KiB + 1, 1536 * KiB}, SizeCase{1793 * KiB, 2 * MiB},
                                         SizeCase{2 * MiB, 2 * MiB}, SizeCase{2 * MiB + 1, 2560 * KiB},
                                         SizeCase{33 * MiB, 40 * MiB}, SizeCase{57 * MiB, 64 * MiB},
                                         SizeCase{64 * MiB, 64 * MiB}));

TEST(Arena, ABlockLiesInARegionWithLocalRightsOnly) {
  FakeDevice device;
  Arena arena(device, {});
  const Block& block = arena.at(arena.alloc(100 * KiB));
  ASSERT_NE(block.region, nullptr);
  const auto at = reinterpret_cast<std::uint64_t>(block.data);
  EXPECT_GE(at, block.region->addr());
  EXPECT_LE(at + block.capacity, block.region->addr() + block.region->length());
  EXPECT_EQ(device.last_access, fabric::access_local_write | fabric::access_mw_bind);
}

TEST(Arena, RequestsNoWindowRightsOnADeviceWithoutWindows) {
  FakeDevice device;
  device.capabilities_.windows = false;
  Arena arena(device, {});
  ASSERT_NE(arena.alloc(1), kNoBlock);
  EXPECT_EQ(device.last_access, std::uint32_t{fabric::access_local_write});
}

TEST(Arena, SmallBlocksShareAChunkAndALargeOneHasItsOwn) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB, .chunk_bytes = MiB});
  for (std::size_t i = 0; i < MiB / (64 * KiB); ++i) ASSERT_NE(arena.alloc(64 * KiB), kNoBlock);
  EXPECT_EQ(device.regions, 1u);
  ASSERT_NE(arena.alloc(64 * KiB), kNoBlock);
  EXPECT_EQ(device.regions, 2u);
  ASSERT_NE(arena.alloc(3 * MiB), kNoBlock);
  EXPECT_EQ(device.regions, 3u);
  EXPECT_EQ(arena.counters().bytes_reserved, 5 * MiB);
}

TEST(Arena, TheLastFreedBlockIsTheFirstReused) {
  FakeDevice device;
  Arena arena(device, {});
  const BlockId a = arena.alloc(64 * KiB), b = arena.alloc(64 * KiB), c = arena.alloc(64 * KiB);
  EXPECT_EQ(arena.counters().reused, 0u);
  arena.release(a);
  arena.release(c);
  arena.release(b);
  EXPECT_EQ(arena.alloc(64 * KiB), b);
  EXPECT_EQ(arena.alloc(64 * KiB), c);
  EXPECT_EQ(arena.alloc(64 * KiB), a);
  EXPECT_EQ(arena.counters().reused, 3u);
}

TEST(Arena, ALargeBlockIsReusedWithItsNumber) {
  FakeDevice device;
  Arena arena(device, {});
  const BlockId first = arena.alloc(16 * MiB);
  std::byte* const data = arena.at(first).data;
  arena.release(first);
  EXPECT_EQ(arena.alloc(15 * MiB), first);
  EXPECT_EQ(arena.at(first).data, data);
  EXPECT_EQ(device.allocs, 1u);
}

TEST(Arena, TheLastReferenceFreesABlock) {
  FakeDevice device;
  Arena arena(device, {});
  const BlockId id = arena.alloc(1);
  arena.retain(id);
  arena.release(id);
  EXPECT_TRUE(arena.live(id));
  arena.release(id);
  EXPECT_FALSE(arena.live(id));
  EXPECT_EQ(arena.counters().blocks_leased, 0u);
  EXPECT_EQ(arena.counters().bytes_leased, 0u);
  EXPECT_EQ(arena.counters().stale, 0u);
}

TEST(Arena, RetainOrReleaseOfAStaleNumberIsOnlyCounted) {
  FakeDevice device;
  Arena arena(device, {});
  const BlockId id = arena.alloc(1);
  arena.release(id);
  arena.release(id);
  arena.retain(id);
  arena.release(kNoBlock);
  arena.release(77);
  arena.release(~BlockId{0});
  EXPECT_EQ(arena.counters().stale, 5u);
  EXPECT_EQ(arena.at(id).data, nullptr);
  // The double release must not have put the block on its free list twice.
  EXPECT_NE(arena.alloc(1), arena.alloc(1));
}

TEST(Arena, ANumberOfARetiredChunkStaysStale) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 4 * MiB});
  const BlockId old = arena.alloc(3 * MiB);
  arena.release(old);
  const BlockId fresh = arena.alloc(4 * MiB);  // retires the chunk of `old` and takes its slot
  ASSERT_NE(fresh, kNoBlock);
  EXPECT_NE(fresh, old);
  arena.release(old);
  EXPECT_TRUE(arena.live(fresh));
  EXPECT_FALSE(arena.live(old));
  EXPECT_EQ(arena.counters().stale, 1u);
}

TEST(Arena, NumbersStayPositiveAsInt32AfterManyChunks) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 8 * KiB});
  for (int round = 0; round < 3000; ++round) {
    const BlockId id = arena.alloc(round % 2 == 0 ? 8 * KiB : 4 * KiB);
    ASSERT_GT(static_cast<std::int32_t>(id), 0);
    arena.release(id);
  }
  EXPECT_EQ(arena.counters().trimmed_chunks, 2999u);
}

/// A block number has few generations. A number that was reused immediately would soon denote another block.
TEST(Arena, ANumberIsReusedAfterAllOtherFreeOnes) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 2 * MiB, .chunk_bytes = MiB});
  arena.release(arena.alloc(4 * KiB));  // its chunk has 256 numbers
  std::set<BlockId> seen;
  // With sanitizers, mapping 10,000 large blocks takes minutes.
#ifdef __SANITIZE_ADDRESS__
  constexpr int kRounds = 1000;
#else
  constexpr int kRounds = 10'000;
#endif
  for (int round = 0; round < kRounds; ++round) {
    const BlockId id = arena.alloc(round % 2 == 0 ? 2 * MiB : 1536 * KiB);
    ASSERT_TRUE(seen.insert(id).second) << "again after " << round << " rounds";
    arena.release(id);
  }
}

TEST(Arena, FindsTheLeasedBlockThatHoldsAWholeRange) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB, .chunk_bytes = MiB});
  const BlockId a = arena.alloc(64 * KiB), b = arena.alloc(64 * KiB), large = arena.alloc(5 * MiB);
  const std::byte* data = arena.at(a).data;
  EXPECT_EQ(arena.find(data, 64 * KiB), a);
  EXPECT_EQ(arena.find(data + 100, 10), a);
  EXPECT_EQ(arena.find(data + 64 * KiB - 1, 1), a);
  EXPECT_EQ(arena.find(data + 64 * KiB, 0), b) << "an empty range belongs to the block that begins there";
  EXPECT_EQ(arena.find(data + 1, 64 * KiB), kNoBlock) << "crosses into the next block";
  EXPECT_EQ(arena.find(data, ~std::size_t{0}), kNoBlock) << "a length that wraps";
  EXPECT_EQ(arena.find(arena.at(large).data + 4 * MiB, MiB), large);
  EXPECT_EQ(arena.find(&arena, 1), kNoBlock);
  EXPECT_EQ(arena.find(nullptr, 0), kNoBlock);
  arena.release(a);
  EXPECT_EQ(arena.find(data, 1), kNoBlock) << "free";
}

TEST(Arena, KnowsABlockUntilItsChunkIsRetired) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = MiB, .chunk_bytes = MiB});
  const BlockId id = arena.alloc(4 * KiB);
  const std::byte* data = arena.at(id).data;
  arena.release(id);
  ASSERT_NE(arena.known(id), nullptr);
  EXPECT_EQ(arena.known(id)->data, data);
  EXPECT_EQ(arena.known(kNoBlock), nullptr);
  EXPECT_EQ(arena.known(id + 100'000), nullptr);
  EXPECT_NE(arena.alloc(MiB), kNoBlock) << "in its place";
  EXPECT_EQ(arena.known(id), nullptr);
}

TEST(Arena, TheBudgetIsNeverExceeded) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 10 * MiB, .chunk_bytes = 4 * MiB});
  std::size_t blocks = 0;
  while (arena.alloc(MiB) != kNoBlock) ++blocks;
  EXPECT_EQ(blocks, 10u) << "the last chunk takes what is left";
  EXPECT_EQ(device.memory_bytes, 10 * MiB);
  EXPECT_EQ(arena.counters().refused, 1u);
  EXPECT_EQ(arena.alloc(4 * KiB), kNoBlock);
}

class ArenaBudgets : public testing::TestWithParam<std::size_t> {};

TEST_P(ArenaBudgets, TheLargestBlockCanBeAllocatedAndNoLargerOne) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = GetParam()});
  const BlockId id = arena.alloc(arena.largest());
  ASSERT_NE(id, kNoBlock);
  EXPECT_GE(arena.at(id).capacity, arena.largest());
  EXPECT_EQ(arena.alloc(arena.largest() + 1), kNoBlock);
  EXPECT_LE(device.memory_bytes, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Table, ArenaBudgets,
                         testing::Values(4 * KiB, 20 * KiB, 64 * KiB, 64 * KiB + 1, 3 * MiB, 17 * MiB));

TEST(Arena, ABudgetBelowAPageAllocatesNothing) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 4095});
  EXPECT_EQ(arena.largest(), 0u);
  EXPECT_EQ(arena.alloc(0), kNoBlock);
  EXPECT_EQ(arena.alloc(1), kNoBlock);
  EXPECT_EQ(arena.counters().refused, 2u);
}

TEST(Arena, IdleChunksAreFreedWhenAnotherClassNeedsTheBudget) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 8 * MiB, .chunk_bytes = MiB});
  std::vector<BlockId> retired;
  arena.on_retire([&](BlockId id) {
    EXPECT_FALSE(arena.live(id));
    EXPECT_EQ(device.memory_bytes, 8 * MiB) << "still mapped during the callback";
    retired.push_back(id);
  });
  const BlockId small = arena.alloc(512 * KiB);
  const BlockId older = arena.alloc(3 * MiB), newer = arena.alloc(4 * MiB);
  arena.release(small);
  arena.release(older);
  arena.release(newer);
  const BlockId taken = arena.alloc(2 * MiB);
  ASSERT_NE(taken, kNoBlock);
  EXPECT_EQ(retired, std::vector<BlockId>{older})
      << "large before small, longest idle first, no more than needed";
  EXPECT_EQ(arena.alloc(4 * MiB), newer) << "kept hot";
}

TEST(Arena, AnIdleSmallChunkIsFreedBlockByBlock) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 4 * MiB, .chunk_bytes = MiB});
  std::set<BlockId> retired;
  arena.on_retire([&](BlockId id) { EXPECT_TRUE(retired.insert(id).second) << "told twice"; });
  const BlockId a = arena.alloc(256 * KiB), b = arena.alloc(256 * KiB);
  arena.release(a);
  EXPECT_EQ(arena.alloc(4 * MiB), kNoBlock) << "b is in use";
  EXPECT_TRUE(retired.empty()) << "nothing is given back when it could not help";
  arena.release(b);
  EXPECT_NE(arena.alloc(4 * MiB), kNoBlock);
  EXPECT_EQ(retired.size(), 4u);
  EXPECT_TRUE(retired.contains(a) && retired.contains(b));
  EXPECT_EQ(arena.counters().trimmed_chunks, 1u);
}

TEST(Arena, LendsALargerBlockWhenNothingCanBeReserved) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 2 * MiB, .chunk_bytes = 2 * MiB});
  const BlockId first = arena.alloc(MiB);
  const BlockId lent = arena.alloc(4 * KiB);
  ASSERT_NE(lent, kNoBlock);
  EXPECT_EQ(arena.at(lent).capacity, MiB);
  EXPECT_EQ(arena.alloc(4 * KiB), kNoBlock);
  arena.release(first);
  arena.release(lent);
  EXPECT_EQ(arena.counters().bytes_leased, 0u);
}

TEST(Arena, ALockLimitBelowTheBudgetMakesASmallerArena) {
  FakeDevice device;
  device.lock_limit_bytes = 64 * KiB;
  Arena arena(device, {});
  std::size_t blocks = 0;
  while (arena.alloc(4 * KiB) != kNoBlock) ++blocks;
  EXPECT_EQ(blocks, 16u);
  EXPECT_EQ(device.memory_bytes, 64 * KiB) << "memory that could not be registered is not kept";
}

TEST(Arena, IdleChunksAreFreedWhenTheSystemRefuses) {
  FakeDevice device;
  device.lock_limit_bytes = 8 * MiB;
  Arena arena(device, {});
  arena.release(arena.alloc(8 * MiB));
  EXPECT_NE(arena.alloc(6 * MiB), kNoBlock);
  EXPECT_EQ(arena.counters().trimmed_chunks, 1u);
}

TEST(Arena, AFailureAtAnyStepLeaksNothing) {
  for (std::uint64_t nth = 1; nth <= 4; ++nth) {
    for (const bool at_reg : {false, true}) {
      FakeDevice device;
      (at_reg ? device.refuse_reg : device.refuse_alloc) = nth;
      {
        Arena arena(device, {.budget_bytes = 16 * MiB, .chunk_bytes = MiB});
        const BlockId ids[] = {arena.alloc(64 * KiB), arena.alloc(2 * MiB), arena.alloc(2 * MiB),
                               arena.alloc(MiB)};
        for (const BlockId id : ids) {
          if (id != kNoBlock) arena.release(id);
        }
        EXPECT_EQ(arena.counters().bytes_leased, 0u);
        EXPECT_EQ(arena.counters().bytes_reserved, device.memory_bytes);
      }
      EXPECT_EQ(device.regions, 0u);
      EXPECT_EQ(device.memory_bytes, 0u);
    }
  }
}

// --- shares of the uses

TEST(Arena, UnusedBlocksDoNotCountAsReleased) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 1 << 20});
  const BlockId used = arena.alloc(4096), unused = arena.alloc(4096);
  arena.release_unused(unused);
  EXPECT_EQ(arena.counters().releases, 0u);
  EXPECT_EQ(arena.counters().blocks_leased, 1u);
  arena.release(used);
  EXPECT_EQ(arena.counters().releases, 1u);
}

TEST(Arena, LeasedMemoryOutlivesTheDevice) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  std::vector<BlockId> retired;
  arena.on_retire([&](BlockId block) { retired.push_back(block); });
  const BlockId large = arena.alloc(2 * MiB), small = arena.alloc(1), free = arena.alloc(8 * MiB);
  arena.release(free);
  arena.at(large).data[0] = std::byte{7};
  arena.leave_device();
  EXPECT_EQ(device.counters().memory_regions, 0u) << "the device cannot be closed with one";
  EXPECT_EQ(retired, std::vector{free}) << "idle chunks go back to the system";
  EXPECT_EQ(arena.at(large).data[0], std::byte{7});
  EXPECT_EQ(arena.at(large).region, nullptr);
  EXPECT_EQ(arena.at(small).region, nullptr);
  EXPECT_EQ(arena.alloc(1), kNoBlock) << "nobody could reach it";
  EXPECT_EQ(arena.counters().blocks_leased, 2u);
  arena.release(large);
  arena.release(small);
  EXPECT_EQ(arena.counters().blocks_leased, 0u);
  EXPECT_EQ(arena.alloc(2 * MiB), kNoBlock);
}

TEST(ArenaShares, OfEarlierStepsLeaveRoomForLaterOnes) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 8 * MiB, .chunk_bytes = 512 << 10});
  struct {
    Use use;
    std::size_t most;
  } const table[] = {{Use::ahead, 1 * MiB}, {Use::part, 2 * MiB},     {Use::request, 4 * MiB},
                     {Use::fetch, 6 * MiB}, {Use::response, 7 * MiB}, {Use::reply_buffer, 8 * MiB}};
  for (const auto& row : table) {
    while (arena.alloc(256 << 10, row.use) != kNoBlock) {
    }
    EXPECT_EQ(arena.counters().bytes_leased, row.most);
  }
}

TEST(ArenaShares, LetALoneMessageBeLargerButNothingThatIsOnlyAhead) {
  for (const Use use : {Use::request, Use::fetch, Use::response, Use::reply_buffer, Use::application}) {
    FakeDevice device;
    Arena arena(device, {.budget_bytes = 8 * MiB});
    const BlockId lone = arena.alloc(8 * MiB, use);
    EXPECT_NE(lone, kNoBlock);
    arena.release(lone);
    EXPECT_EQ(arena.alloc(8 * MiB, Use::ahead), kNoBlock);
    EXPECT_EQ(arena.alloc(8 * MiB, Use::part), kNoBlock);
    EXPECT_NE(arena.alloc(8 * MiB, use), kNoBlock);  // the release has been counted
  }
}

}  // namespace
}  // namespace rdma_rpc::memory

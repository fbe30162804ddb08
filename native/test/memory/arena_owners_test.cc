// Tests the shares of the arena: how much an owner may use while other owners exist, and which memory it
// cannot take from them.
#include <gtest/gtest.h>

#include <vector>

#include "fake_device.h"
#include "memory/arena.h"

namespace rdma_rpc::memory {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

/// Allocates until the owner is refused. Returns the number of blocks that the owner got.
std::size_t take_all(Arena& arena, std::size_t bytes, Use use, OwnerId owner) {
  std::size_t count = 0;
  while (arena.alloc(bytes, use, owner) != kNoBlock) ++count;
  return count;
}

TEST(ArenaOwners, ASingleOwnerMayHaveEverything) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  EXPECT_EQ(take_all(arena, MiB, Use::reply_buffer, arena.add_owner()), 64u);
}

constexpr Use kLaterUses[] = {Use::fetch, Use::response, Use::reply_buffer};

TEST(ArenaOwners, AGreedyOwnerLeavesAQuarterToTheOthers) {
  for (const Use use : kLaterUses) {
    SCOPED_TRACE(static_cast<int>(use));
    FakeDevice device;
    Arena arena(device, {.budget_bytes = 64 * MiB});
    arena.add_owner();
    const std::size_t limit = 64 * kShareOfUse[static_cast<std::size_t>(use)];  // in blocks of 128 KiB
    EXPECT_EQ(take_all(arena, 128 * KiB, use, arena.add_owner()), limit / 4 * 3);
  }
}

TEST(ArenaOwners, BesideManyGreedyOwnersAnotherHasItsShare) {
  for (const Use use : kLaterUses) {
    for (const std::size_t greedy : {1u, 2u, 5u, 20u}) {
      SCOPED_TRACE(testing::Message() << greedy << " for use " << static_cast<int>(use));
      FakeDevice device;
      Arena arena(device, {.budget_bytes = 64 * MiB});
      const OwnerId last = arena.add_owner();
      std::vector<OwnerId> owners;
      for (std::size_t i = 0; i < greedy; ++i) owners.push_back(arena.add_owner());
      for (const OwnerId owner : owners) take_all(arena, 64 * KiB, use, owner);
      const std::size_t limit = 8 * MiB * kShareOfUse[static_cast<std::size_t>(use)];
      const std::size_t share = limit / kReservedShare / (1 + greedy);
      EXPECT_GE(take_all(arena, 64 * KiB, use, last), share / (64 * KiB));
    }
  }
}

TEST(ArenaOwners, EachMayHaveOneBlockForEachStep) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  const OwnerId greedy = arena.add_owner();
  arena.add_owner();
  EXPECT_GT(take_all(arena, MiB, Use::request, greedy), 1u);
  for (const Use use : kLaterUses) {
    EXPECT_NE(arena.alloc(8 * MiB, use, greedy), kNoBlock) << static_cast<int>(use);
    EXPECT_TRUE(arena.beyond_share(17 * MiB, use, greedy)) << static_cast<int>(use);
  }
}

/// A client and a server run on one thread, and the sent data is copied. The copies keep their memory until
/// they are fetched.
TEST(ArenaOwners, TheOnlyBlockOfAStepMayComeOutOfTheReserve) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 16 * MiB});
  const OwnerId client = arena.add_owner(), server = arena.add_owner();
  EXPECT_NE(arena.alloc(4 * MiB, Use::part, client), kNoBlock);
  EXPECT_NE(arena.alloc(4 * MiB, Use::request, client), kNoBlock);
  const BlockId fetched = arena.alloc(4 * MiB, Use::fetch, server);
  EXPECT_NE(fetched, kNoBlock);
  arena.release(fetched);
  EXPECT_NE(arena.alloc(64 * KiB, Use::fetch, client), kNoBlock);
  EXPECT_EQ(arena.alloc(4 * MiB, Use::fetch, server), kNoBlock);
}

TEST(ArenaOwners, AnOwnerWithALimitKeepsItForItsRequests) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  const OwnerId limited = arena.add_owner(4 * MiB);
  EXPECT_EQ(take_all(arena, 128 * KiB, Use::ahead, limited), 5u);  // a sixth of 4 MiB
  EXPECT_EQ(take_all(arena, 128 * KiB, Use::fetch, limited), 27u);
  EXPECT_TRUE(arena.beyond_own_limit(1, Use::fetch, limited));
  EXPECT_NE(arena.alloc(8 * MiB, Use::response, limited), kNoBlock);
  const OwnerId other = arena.add_owner();
  EXPECT_FALSE(arena.beyond_own_limit(8 * MiB, Use::fetch, other));
  EXPECT_NE(arena.alloc(8 * MiB, Use::fetch, other), kNoBlock);
}

/// Responses have a share of the same size, so that they never wait for memory that their own requests hold.
/// A block that is larger than the share is allowed while it is the only one.
TEST(ArenaOwners, AnAnswerCountsForTheLimitOfItsOwnerBesideRequests) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  const OwnerId limited = arena.add_owner(4 * MiB);
  ASSERT_NE(arena.alloc(4 * MiB, Use::fetch, limited), kNoBlock);
  const BlockId large = arena.alloc(8 * MiB, Use::response, limited);
  ASSERT_NE(large, kNoBlock) << "nothing would come free for it";
  EXPECT_TRUE(arena.beyond_own_limit(1, Use::response, limited));
  EXPECT_EQ(arena.alloc(KiB, Use::response, limited), kNoBlock);
  EXPECT_EQ(arena.alloc(KiB, Use::part, limited), kNoBlock);
  arena.release(large);
  for (const Use use : {Use::response, Use::part, Use::part, Use::response})
    EXPECT_NE(arena.alloc(MiB, use, limited), kNoBlock);
  EXPECT_EQ(arena.alloc(MiB, Use::response, limited), kNoBlock);
  EXPECT_EQ(arena.alloc(MiB, Use::part, limited), kNoBlock);
  EXPECT_NE(arena.alloc(MiB, Use::reply_buffer, limited), kNoBlock);
}

TEST(ArenaOwners, TheIndexOfAnOwnerWithALimitIsReusedForOneWithout) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  arena.remove_owner(arena.add_owner(KiB));
  EXPECT_FALSE(arena.beyond_own_limit(MiB, Use::fetch, arena.add_owner()));
}

TEST(ArenaOwners, AnOwnerMayFillAnEmptyArenaWithAMessage) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  const OwnerId owner = arena.add_owner();
  arena.add_owner();
  EXPECT_NE(arena.alloc(64 * MiB, Use::reply_buffer, owner), kNoBlock);
}

TEST(ArenaOwners, BlocksOfARemovedOwnerCountForNoOther) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 64 * MiB});
  arena.add_owner();
  const OwnerId gone = arena.add_owner();
  std::vector<BlockId> blocks;
  for (BlockId id; (id = arena.alloc(MiB, Use::reply_buffer, gone)) != kNoBlock;) blocks.push_back(id);
  arena.remove_owner(gone);
  const OwnerId next = arena.add_owner();
  EXPECT_NE(next, gone);
  for (const BlockId id : blocks) arena.release(id);
  arena.remove_owner(next);
  EXPECT_LE(arena.add_owner(), next);
  EXPECT_EQ(arena.counters().bytes_leased, 0u);
}

}  // namespace
}  // namespace rdma_rpc::memory

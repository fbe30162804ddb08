// Tests that chunks of the arena that have been unused for long are returned to the system. The tests check
// which chunks, when, and how many at once.
#include <gtest/gtest.h>

#include <vector>

#include "fake_device.h"
#include "memory/arena.h"

namespace rdma_rpc::memory {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

TEST(IdleArena, ChunksUnusedForLongAreFreedExceptTheLast) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 256 * MiB});
  const auto second = [&] {
    arena.mark_idle();
    return arena.trim_idle();
  };
  std::vector<BlockId> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(arena.alloc(4 * MiB));
  second();
  second();
  EXPECT_FALSE(arena.trimmable()) << "all are used";
  for (const BlockId block : blocks) arena.release(block);
  EXPECT_TRUE(arena.trimmable());
  second();
  EXPECT_EQ(device.memory_bytes, 80 * MiB) << "not idle for long";
  const BlockId used = arena.alloc(4 * MiB);
  EXPECT_EQ(used, blocks.back()) << "hot";
  EXPECT_TRUE(second()) << "there is more";
  EXPECT_EQ(device.memory_bytes, 80 * MiB - kTrimBytes);
  EXPECT_EQ(arena.known(blocks[0]), nullptr);
  arena.release(used);
  while (arena.trim_idle()) {
  }
  EXPECT_EQ(device.memory_bytes, kKeptIdleBytes);
  EXPECT_FALSE(arena.trimmable());
  second();
  second();
  EXPECT_EQ(device.memory_bytes, kKeptIdleBytes) << "that stays";
  EXPECT_EQ(arena.alloc(4 * MiB), used) << "and it is what was used last";
}

TEST(IdleArena, NoMoreIsFreedThanIsIdle) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 256 * MiB});
  const BlockId held = arena.alloc(64 * MiB);
  arena.release(arena.alloc(32 * MiB));
  for (int i = 0; i < 4; ++i) {
    arena.mark_idle();
    arena.trim_idle();
  }
  EXPECT_EQ(device.memory_bytes, 64 * MiB);
  EXPECT_TRUE(arena.live(held));
}

}  // namespace
}  // namespace rdma_rpc::memory

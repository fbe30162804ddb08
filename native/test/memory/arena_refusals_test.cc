// Tests the reasons for which the arena refuses a block: a limit of the arena, or an error of the system.
#include <gtest/gtest.h>

#include "fake_device.h"
#include "memory/arena.h"

namespace rdma_rpc::memory {
namespace {

TEST(ArenaRefusals, OfTheSystemDifferFromThoseOfTheBudget) {
  FakeDevice device;
  Arena arena(device, {.budget_bytes = 8 << 20});
  EXPECT_EQ(arena.alloc(9 << 20), kNoBlock);
  EXPECT_EQ(arena.refusal(), "");
  device.lock_limit_bytes = 1 << 20;
  EXPECT_EQ(arena.alloc(2 << 20), kNoBlock);
  EXPECT_EQ(arena.refusal(), "RLIMIT_MEMLOCK is 1048576");
  device.alloc_limit_bytes = 100;
  EXPECT_EQ(arena.alloc(2 << 20), kNoBlock);
  EXPECT_EQ(arena.refusal(), "no more than 100 bytes");
  device.lock_limit_bytes = device.alloc_limit_bytes = ~std::uint64_t{0};
  EXPECT_NE(arena.alloc(2 << 20), kNoBlock);
  EXPECT_EQ(arena.refusal(), "");
}

}  // namespace
}  // namespace rdma_rpc::memory

// Tests the memory of the receives of many sessions. The tests use the simulated fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fabric/sim/sim.h"
#include "session/limits.h"
#include "session/link/receive_pool.h"

namespace rdma_rpc::session::test {
namespace {

/// A device with at most this number of memories; 0 for no limit.
class ReceivePools : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 5000, kSlabBytes = 8192;  // whole pages

  static fabric::SimOptions options(std::uint32_t max_memories) {
    fabric::SimOptions options;
    options.capabilities.max_memories = max_memories;
    return options;
  }
  explicit ReceivePools(std::uint32_t max_memories = 64)
      : world(options(max_memories)), device(world.open_device()), pool(*device) {}

  void take(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      slabs.push_back(pool.take(kBytes, &error));
      ASSERT_TRUE(slabs.back()) << error;
    }
  }
  std::uint64_t memories() const { return device->counters().memory_regions; }

  fabric::SimWorld world;
  std::shared_ptr<fabric::Device> device;
  std::string error;
  ReceivePool pool;
  std::vector<ReceivePool::Slab> slabs;
};

TEST_F(ReceivePools, NoTwoSessionsHaveTheSameBytes) {
  take(200);
  std::vector<std::byte*> begins;
  for (const ReceivePool::Slab& slab : slabs) {
    EXPECT_EQ(slab.size(), kSlabBytes);
    begins.push_back(slab.data());
    std::fill_n(slab.data(), slab.size(), std::byte{1});
  }
  std::sort(begins.begin(), begins.end());
  for (std::size_t i = 1; i < begins.size(); ++i)
    EXPECT_GE(begins[i] - begins[i - 1], std::ptrdiff_t{kSlabBytes});
}

/// The memories have 1, 1, 2, 4 ... 64 slabs, and 64 from then on.
TEST_F(ReceivePools, ManySessionsShareFewMemories) {
  take(1);
  EXPECT_EQ(memories(), 1u);
  take(127);
  EXPECT_EQ(memories(), 8u);
  take(kSlabsPerMemory);
  EXPECT_EQ(memories(), 9u);
}

TEST_F(ReceivePools, ReturnedSlabsAreReusedAndEmptyMemoriesFreedExceptOne) {
  take(128);
  std::byte* const one = slabs[77].data();
  slabs.erase(slabs.begin() + 77);
  take(1);
  EXPECT_EQ(slabs.back().data(), one);
  EXPECT_EQ(memories(), 8u);
  slabs.erase(slabs.begin(), slabs.begin() + 60);
  EXPECT_LT(memories(), 8u);
  slabs.clear();
  EXPECT_EQ(memories(), 1u);
}

TEST_F(ReceivePools, TheMemoryOfOneSessionStaysForTheNext) {
  take(1);
  std::byte* const bytes = slabs.back().data();
  for (int session = 0; session < 3; ++session) {
    slabs.clear();
    EXPECT_EQ(memories(), 1u);
    take(1);
    EXPECT_EQ(slabs.back().data(), bytes);
  }
}

/// Sessions with receives of different lengths follow one another when the options of a channel change.
TEST_F(ReceivePools, TheMemoryThatStaysMakesRoomForAnotherLength) {
  take(1);
  slabs.clear();
  const ReceivePool::Slab longer = pool.take(3 * kSlabBytes, &error);
  ASSERT_TRUE(longer) << error;
  EXPECT_EQ(memories(), 1u);
}

TEST_F(ReceivePools, OtherLengthsLieElsewhere) {
  take(3);
  const ReceivePool::Slab longer = pool.take(3 * kSlabBytes, &error);
  ASSERT_TRUE(longer) << error;
  EXPECT_EQ(longer.size(), 3 * kSlabBytes);
  for (const ReceivePool::Slab& slab : slabs) {
    EXPECT_TRUE(slab.data() + slab.size() <= longer.data() || longer.data() + longer.size() <= slab.data());
  }
}

class OwnMemories : public ReceivePools {
 protected:
  OwnMemories() : ReceivePools(0) {}
};

TEST_F(OwnMemories, WhereThereAreManyEachSessionHasItsOwn) {
  take(20);
  EXPECT_EQ(memories(), 20u);
  slabs.clear();
  EXPECT_EQ(memories(), 0u) << "unused memory would stay pinned";
}

}  // namespace
}  // namespace rdma_rpc::session::test

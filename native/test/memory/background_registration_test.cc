// Tests registrations of large buffers on another thread. The tests check which calls wait for a
// registration, what happens to it, and what a late registration must not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "fake_device.h"
#include "memory/mr_cache.h"

namespace rdma_rpc::memory {
namespace {

/// A cache that registers large buffers (1,000 bytes and more) in the background, at the moment that the test
/// chooses.
class BackgroundTest : public testing::Test {
 protected:
  BackgroundTest() {
    cache.set_background([this](std::uint64_t key, std::shared_ptr<fabric::Registration> registration) {
      if (!takes) return false;
      started.emplace_back(key, std::move(registration));
      return true;
    });
  }
  bool awaits(std::uint64_t key, std::size_t bytes, std::uint64_t now_ns = 0) {
    return cache.awaits(key, at(key), bytes, now_ns, nullptr);
  }
  void finish(std::uint64_t key, std::uint64_t now_ns = 0) {
    const auto found =
        std::find_if(started.begin(), started.end(), [key](const auto& each) { return each.first == key; });
    ASSERT_NE(found, started.end());
    const auto registration = found->second;
    started.erase(found);
    registration->pin();
    cache.finish(key, *registration, now_ns);
  }

  void use(std::uint64_t key, std::size_t bytes) {
    EXPECT_NE(cache.acquire(key, at(key), bytes, 0, &error), nullptr) << error;
    cache.unpin(key, 0);
  }
  void* at(std::uint64_t key) { return memory.data() + key * 64; }

  FakeDevice device;
  std::array<std::byte, 8192> memory{};
  std::string error;
  bool takes = true;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<fabric::Registration>>> started;
  MrCache cache{device, {.max_bytes = 4000, .max_entries = 4, .idle_ns = 100, .background_bytes = 1000}};
};

TEST_F(BackgroundTest, OnlyLargeBuffersThatAreNotRegisteredAreAwaited) {
  EXPECT_FALSE(awaits(1, 999));
  use(2, 1000);
  EXPECT_FALSE(awaits(2, 1000));
  EXPECT_FALSE(awaits(3, 4001)) << "acquire() says which limit it is";
  EXPECT_TRUE(started.empty());
}

TEST_F(BackgroundTest, OneIsAwaitedUntilItIsOverAndIsAHitThen) {
  EXPECT_TRUE(awaits(1, 1000));
  EXPECT_TRUE(awaits(1, 1000)) << "for another call";
  EXPECT_EQ(started.size(), 1u);
  EXPECT_EQ(device.regions, 0u);
  finish(1);
  EXPECT_EQ(cache.finished(), 1u);
  EXPECT_FALSE(awaits(1, 1000));
  use(1, 1000);
  EXPECT_EQ(cache.counters().hits, 1u);
  EXPECT_EQ(cache.counters().misses, 1u);
  EXPECT_EQ(cache.counters().background, 1u);
  EXPECT_EQ(device.regs, 1u);
}

TEST_F(BackgroundTest, ARefusedRegistrationIsRetriedHereAndThenGivesTheReason) {
  device.lock_limit_bytes = 500;
  EXPECT_TRUE(awaits(1, 1000));
  finish(1);
  EXPECT_FALSE(awaits(1, 1000));
  EXPECT_EQ(cache.acquire(1, at(1), 1000, 0, &error), nullptr);
  EXPECT_NE(error.find("RLIMIT_MEMLOCK is 500"), std::string::npos) << error;
  EXPECT_TRUE(awaits(1, 1000)) << "the next call, with the limit as it is by then";
}

TEST_F(BackgroundTest, WithoutAThreadTheBufferIsRegisteredHere) {
  takes = false;
  EXPECT_FALSE(awaits(1, 1000));
  use(1, 1000);
  EXPECT_EQ(cache.counters().background, 0u);
}

TEST_F(BackgroundTest, ABufferWhoseMemoryIsGoneMeanwhileIsNotKept) {
  struct Gone final : fabric::Presence {
    bool present() const override { return false; }
  };
  EXPECT_TRUE(cache.awaits(1, at(1), 1000, 0, std::make_shared<Gone>()));
  finish(1);
  EXPECT_FALSE(cache.holds(1));
  EXPECT_EQ(device.regions, 0u);
}

/// The region behaves like one that acquire() has registered: its users must see that its memory is gone.
TEST_F(BackgroundTest, ABufferWhoseMemoryIsGoneLaterIsNoticed) {
  struct Switched final : fabric::Presence {
    bool present() const override { return here; }
    bool here = true;
  };
  const auto presence = std::make_shared<Switched>();
  EXPECT_TRUE(cache.awaits(1, at(1), 1000, 0, presence));
  finish(1);
  const fabric::MemoryRegion* region = cache.acquire(1, at(1), 1000, 0, &error);
  ASSERT_NE(region, nullptr) << error;
  EXPECT_TRUE(region->present());
  presence->here = false;
  EXPECT_FALSE(region->present());
}

TEST_F(BackgroundTest, ABufferThatAcquireHasRegisteredIsNotRegisteredTwice) {
  EXPECT_TRUE(awaits(1, 1000));
  EXPECT_NE(cache.acquire(1, at(1), 1000, 0, &error), nullptr) << error;
  finish(1);
  EXPECT_EQ(device.regions, 1u);
  EXPECT_EQ(cache.counters().entries, 1u);
}

TEST_F(BackgroundTest, ALateOneDoesNotEndTheNext) {
  EXPECT_TRUE(awaits(1, 1000));
  use(1, 1000);
  cache.expire(1000);
  EXPECT_TRUE(awaits(1, 1000, 1000));
  finish(1, 1000);
  EXPECT_TRUE(awaits(1, 1000, 1000)) << "the second is still under way";
  EXPECT_EQ(device.regions, 0u);
  finish(1, 1000);
  EXPECT_EQ(device.regions, 1u);
}

TEST_F(BackgroundTest, AnUnusedRegistrationExpiresLikeAnIdleOne) {
  device.refuse_reg = 1;
  EXPECT_TRUE(awaits(1, 1000, 5));
  finish(1, 10);
  cache.expire(109);
  EXPECT_FALSE(awaits(1, 1000)) << "tried, and remembered";
  cache.expire(110);
  EXPECT_TRUE(awaits(1, 1000));
}

TEST_F(BackgroundTest, TheirNumberIsThatOfEntries) {
  for (std::uint64_t key = 1; key <= 4; ++key) EXPECT_TRUE(awaits(key, 1000));
  EXPECT_FALSE(awaits(5, 1000));
}

TEST_F(BackgroundTest, AnEndAfterTheDeviceIsReleasedChangesNothing) {
  EXPECT_TRUE(awaits(1, 1000));
  cache.clear();
  finish(1);
  EXPECT_EQ(device.regions, 0u);
  EXPECT_FALSE(cache.holds(1));
}

}  // namespace
}  // namespace rdma_rpc::memory

// Tests which buffers count as the same in the registration cache, at which time entries may be evicted, and
// the error of a refusal.
#include "memory/mr_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "fake_device.h"

namespace rdma_rpc::memory {
namespace {

class MrCacheTest : public testing::Test {
 protected:
  /// Calls acquire() for the first `bytes` of buffer `key`, and expects it to succeed.
  const fabric::MemoryRegion* get(MrCache& cache, std::uint64_t key, std::size_t bytes,
                                  std::uint64_t now_ns = 0) {
    const auto* region = cache.acquire(key, at(key), bytes, now_ns, &error);
    EXPECT_NE(region, nullptr) << error;
    return region;
  }
  void use(MrCache& cache, std::uint64_t key, std::size_t bytes, std::uint64_t now_ns = 0) {
    get(cache, key, bytes, now_ns);
    cache.unpin(key, now_ns);
  }
  void* at(std::uint64_t key) { return memory.data() + key * 64; }
  void watch(MrCache& cache) {
    cache.on_evict([this](std::uint64_t key) { evicted.push_back(key); });
  }

  FakeDevice device;
  std::array<std::byte, 8192> memory{};
  std::string error;
  std::vector<std::uint64_t> evicted;
};
using Keys = std::vector<std::uint64_t>;

TEST_F(MrCacheTest, RegistersOnDemandWhereTheDeviceCan) {
  for (const bool can : {false, true}) {
    device.capabilities_.on_demand = can;
    MrCache cache(device, {.on_demand = true});
    use(cache, 1, 64);
    EXPECT_EQ((device.last_access & fabric::access_on_demand) != 0, can);
  }
}

TEST_F(MrCacheTest, ClearingEvictsEverythingAndReportsIt) {
  MrCache cache(device, {});
  watch(cache);
  get(cache, 1, 64);
  use(cache, 2, 64);
  cache.clear();
  EXPECT_EQ(device.regions, 0u);
  EXPECT_EQ(evicted, (Keys{1, 2}));
  EXPECT_EQ(cache.counters().entries, 0u);
  EXPECT_EQ(cache.counters().bytes, 0u);
  EXPECT_EQ(cache.counters().pinned, 0u);
  cache.unpin(1, 0);  // unpin() by the remaining user
}

TEST_F(MrCacheTest, ASecondUseIsAHit) {
  MrCache cache(device, {});
  const auto* first = get(cache, 1, 64);
  cache.unpin(1, 0);
  EXPECT_EQ(get(cache, 1, 64), first);
  EXPECT_EQ(device.regs, 1u);
  EXPECT_EQ(cache.counters().hits, 1u);
  EXPECT_EQ(cache.counters().misses, 1u);
  EXPECT_EQ(first->addr(), reinterpret_cast<std::uint64_t>(at(1)));
  EXPECT_EQ(first->length(), 64u);
  EXPECT_EQ(device.last_access, fabric::access_local_write | fabric::access_mw_bind);
}

TEST_F(MrCacheTest, TwoBuffersAtOneAddressAreTwoEntries) {
  MrCache cache(device, {});
  const auto* first = cache.acquire(1, at(0), 64, 0, &error);
  const auto* second = cache.acquire(2, at(0), 64, 0, &error);
  EXPECT_NE(first, second);
  EXPECT_EQ(cache.counters().entries, 2u);
}

TEST_F(MrCacheTest, ABufferThatMovedOrChangedItsLengthIsRegisteredAnew) {
  MrCache cache(device, {});
  watch(cache);
  use(cache, 1, 64);
  EXPECT_EQ(get(cache, 1, 128)->length(), 128u);
  cache.unpin(1, 0);
  const auto* moved = cache.acquire(1, at(5), 128, 0, &error);
  EXPECT_EQ(moved->addr(), reinterpret_cast<std::uint64_t>(at(5)));
  EXPECT_EQ(device.regions, 1u);
  EXPECT_EQ(cache.counters().bytes, 128u);
  EXPECT_EQ(evicted, Keys{}) << "the owner still has to keep that buffer alive";
}

TEST_F(MrCacheTest, APinnedBufferCannotChange) {
  MrCache cache(device, {});
  const auto* region = get(cache, 1, 64);
  EXPECT_EQ(cache.acquire(1, at(1), 128, 0, &error), nullptr);
  EXPECT_NE(error.find("resized"), std::string::npos) << error;
  EXPECT_EQ(get(cache, 1, 64), region) << "the entry is untouched";
}

TEST_F(MrCacheTest, AReplacementThatFailsIsAnEviction) {
  MrCache cache(device, {});
  watch(cache);
  use(cache, 1, 64);
  device.refuse_reg = 2;
  EXPECT_EQ(cache.acquire(1, at(1), 128, 0, &error), nullptr);
  EXPECT_EQ(evicted, Keys{1});
  EXPECT_EQ(cache.counters().entries, 0u);
}

TEST_F(MrCacheTest, TheLeastRecentlyUsedIsEvictedForBytes) {
  MrCache cache(device, {.max_bytes = 300});
  watch(cache);
  use(cache, 1, 100);
  use(cache, 2, 100);
  use(cache, 3, 100);
  use(cache, 1, 100);
  use(cache, 4, 150);
  EXPECT_EQ(evicted, (Keys{2, 3}));
  EXPECT_EQ(cache.counters().bytes, 250u);
  EXPECT_EQ(device.registered_bytes, 250u);
  EXPECT_EQ(cache.counters().evictions, 2u);
}

TEST_F(MrCacheTest, TheLeastRecentlyUsedIsEvictedForEntries) {
  MrCache cache(device, {.max_entries = 2});
  watch(cache);
  use(cache, 1, 64);
  use(cache, 2, 64);
  use(cache, 3, 64);
  EXPECT_EQ(evicted, Keys{1});
  EXPECT_EQ(cache.counters().entries, 2u);
}

TEST_F(MrCacheTest, APinnedEntryIsNeverEvicted) {
  MrCache cache(device, {.max_bytes = 200, .idle_ns = 10});
  watch(cache);
  const auto* region = get(cache, 1, 100, 0);
  use(cache, 2, 100, 1);
  use(cache, 3, 100, 2);
  cache.expire(1'000);
  EXPECT_EQ(evicted, (Keys{2, 3}));
  EXPECT_EQ(cache.counters().pinned, 1u);
  EXPECT_EQ(get(cache, 1, 100, 1'000), region);
}

TEST_F(MrCacheTest, PinsAreCounted) {
  MrCache cache(device, {.idle_ns = 10});
  watch(cache);
  get(cache, 1, 64);
  get(cache, 1, 64);
  cache.unpin(1, 0);
  cache.expire(100);
  EXPECT_EQ(evicted, Keys{});
  cache.unpin(1, 100);
  cache.unpin(1, 100);  // one call too many, which is ignored
  EXPECT_EQ(cache.counters().pinned, 0u);
  cache.expire(110);
  EXPECT_EQ(evicted, Keys{1});
}

TEST_F(MrCacheTest, ABufferThatSeveralCallsUseCountsOnce) {
  MrCache cache(device, {.max_bytes = 300});
  for (int call = 0; call < 2; ++call) get(cache, 1, 100);
  EXPECT_NE(cache.acquire(2, at(2), 150, 0, &error), nullptr) << error;
  cache.unpin(2, 0);
  for (int call = 0; call < 2; ++call) cache.unpin(1, 0);
  EXPECT_NE(cache.acquire(3, at(3), 300, 0, &error), nullptr) << error;
}

TEST_F(MrCacheTest, IdleTimeCountsFromTheLastUse) {
  MrCache cache(device, {.idle_ns = 100});
  watch(cache);
  use(cache, 1, 64, 0);
  use(cache, 2, 64, 50);
  use(cache, 1, 64, 60);
  cache.expire(149);
  EXPECT_EQ(evicted, Keys{});
  cache.expire(150);
  EXPECT_EQ(evicted, Keys{2});
  cache.expire(160);
  EXPECT_EQ(evicted, (Keys{2, 1}));
  EXPECT_EQ(cache.counters().expired, 2u);
  EXPECT_EQ(cache.counters().evictions, 0u);
}

TEST_F(MrCacheTest, AClockThatStepsBackExpiresNothing) {
  MrCache cache(device, {.idle_ns = 100});
  use(cache, 1, 64, 1'000);
  cache.expire(0);
  EXPECT_EQ(cache.counters().entries, 1u);
}

TEST_F(MrCacheTest, UnknownKeysAreIgnored) {
  MrCache cache(device, {});
  cache.unpin(9, 0);
  EXPECT_EQ(cache.counters().entries, 0u);
}

TEST_F(MrCacheTest, ARefusalNamesTheLimitAndItsNumber) {
  MrCache cache(device, {.max_bytes = 500, .max_entries = 2});
  watch(cache);
  EXPECT_EQ(cache.acquire(1, at(1), 501, 0, &error), nullptr);
  EXPECT_NE(error.find("501 bytes is larger than mrCacheBytes (500)"), std::string::npos) << error;

  get(cache, 1, 400);
  use(cache, 2, 50);
  EXPECT_EQ(cache.acquire(3, at(3), 101, 0, &error), nullptr);
  EXPECT_NE(error.find("400 bytes of mrCacheBytes (500)"), std::string::npos) << error;
  EXPECT_EQ(evicted, Keys{}) << "nothing leaves when that could not help";

  get(cache, 2, 50);
  EXPECT_EQ(cache.acquire(3, at(3), 10, 0, &error), nullptr);
  EXPECT_NE(error.find("mrCacheEntriesMax (2)"), std::string::npos) << error;

  EXPECT_EQ(cache.acquire(4, nullptr, 0, 0, &error), nullptr);
  EXPECT_NE(error.find("empty or detached"), std::string::npos) << error;
  EXPECT_EQ(cache.counters().refused, 4u);
}

TEST_F(MrCacheTest, ALockLimitEvictsIdleEntriesAndIsNamedWhenThatDoesNotHelp) {
  device.lock_limit_bytes = 200;
  MrCache cache(device, {});
  watch(cache);
  use(cache, 1, 100);
  use(cache, 2, 100);
  get(cache, 3, 100);
  EXPECT_EQ(evicted, Keys{1});
  EXPECT_EQ(cache.acquire(4, at(4), 150, 0, &error), nullptr);
  EXPECT_NE(error.find("150 bytes"), std::string::npos) << error;
  EXPECT_NE(error.find("RLIMIT_MEMLOCK is 200"), std::string::npos) << error;
}

TEST_F(MrCacheTest, ARefusalOfADeviceThatPinsNothingEvictsNothing) {
  device.capabilities_.pins_memory = false;
  MrCache cache(device, {});
  watch(cache);
  use(cache, 1, 100);
  device.refuse_reg = 2;
  EXPECT_EQ(cache.acquire(2, at(2), 100, 0, &error), nullptr);
  EXPECT_EQ(evicted, Keys{});
}

TEST_F(MrCacheTest, TheOwnerMayCallBackIntoTheCache) {
  MrCache cache(device, {.max_bytes = 200});
  cache.on_evict([&](std::uint64_t key) {
    cache.unpin(key, 0);
    evicted.push_back(key);
  });
  use(cache, 1, 100);
  use(cache, 2, 100);
  use(cache, 3, 200);
  EXPECT_EQ(evicted, (Keys{1, 2}));
}

TEST_F(MrCacheTest, RandomUseKeepsItsBudgetsAndLeaksNothing) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    {
      MrCache cache(device, {.max_bytes = 1000, .max_entries = 8, .idle_ns = 8});
      std::mt19937_64 random(seed);
      std::vector<std::uint64_t> pins;
      for (std::uint64_t now = 0; now < 10'000; ++now) {
        const std::uint64_t key = random() % 24;
        switch (random() % 5) {
          case 0:
          case 1:
            if (cache.acquire(key, at(key), 50 + key * 10, now, &error) != nullptr) pins.push_back(key);
            break;
          case 2:
          case 3:
            if (pins.empty()) break;
            std::swap(pins[random() % pins.size()], pins.back());
            cache.unpin(pins.back(), now);
            pins.pop_back();
            break;
          default:
            cache.expire(now);
        }
        const MrCacheCounters counters = cache.counters();
        ASSERT_LE(counters.bytes, 1000u);
        ASSERT_LE(counters.entries, 8u);
        ASSERT_EQ(counters.entries, device.regions);
        ASSERT_EQ(counters.bytes, device.registered_bytes);
      }
      for (const std::uint64_t key : pins) cache.unpin(key, 10'000);
      EXPECT_EQ(cache.counters().pinned, 0u);
      EXPECT_GT(cache.counters().evictions, 0u);
      EXPECT_GT(cache.counters().expired, 0u);
    }
    EXPECT_EQ(device.regions, 0u);
  }
}

}  // namespace
}  // namespace rdma_rpc::memory

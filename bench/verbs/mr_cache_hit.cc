// Measures the cost of a hit in the registration cache, and checks that a hit makes no device call. It prints
// one line of JSON. It needs no RDMA, because its device is the shm device, wrapped in a device that counts.
// bench/verbs/main.ts starts this program.
#include <chrono>
#include <cstdio>
#include <vector>

#include "fabric/shm/shm.h"
#include "memory/mr_cache.h"

using namespace rdma_rpc;

namespace {

constexpr std::size_t kBuffers = 256;
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr int kRounds = 50;
constexpr int kHitsPerRound = 100'000;

/// Forwards every call, and counts it.
class CountingDevice final : public fabric::Device {
 public:
  explicit CountingDevice(fabric::Device& device) : device_(device) {}
  const fabric::Capabilities& capabilities() const override { return device_.capabilities(); }
  std::unique_ptr<fabric::HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) override {
    ++calls;
    return device_.alloc_memory(bytes, purpose);
  }
  std::unique_ptr<fabric::MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                               std::string* error) override {
    ++calls;
    return device_.reg_mr(addr, length, access, error);
  }
  std::unique_ptr<fabric::MemoryWindow> alloc_mw() override {
    ++calls;
    return device_.alloc_mw();
  }
  std::unique_ptr<fabric::CompletionQueue> create_cq(std::uint32_t entries) override {
    ++calls;
    return device_.create_cq(entries);
  }
  std::unique_ptr<fabric::QueuePair> create_qp(fabric::CompletionQueue& cq, const fabric::QpOptions& options,
                                               std::string* error) override {
    ++calls;
    return device_.create_qp(cq, options, error);
  }
  fabric::DeviceCounters counters() const override { return device_.counters(); }

  std::uint64_t calls = 0;

 private:
  fabric::Device& device_;
};

int fail(const std::string& why) {
  std::fprintf(stderr, "mr_cache_hit: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main() {
  std::string error;
  const auto shm = fabric::open_shm_device({}, &error);
  if (shm == nullptr) return fail(error);
  CountingDevice device(*shm);
  memory::MrCache cache(device, {});
  std::vector<std::byte> bytes(kBuffers * kBufferBytes);
  const auto use = [&](std::uint64_t key, std::uint64_t now_ns) {
    const bool found =
        cache.acquire(key + 1, bytes.data() + key * kBufferBytes, kBufferBytes, now_ns, &error) != nullptr;
    if (found) cache.unpin(key + 1, now_ns);
    return found;
  };
  for (std::uint64_t key = 0; key < kBuffers; ++key) {
    if (!use(key, 0)) return fail(error);
  }
  const std::uint64_t calls_before = device.calls;
  // Take the best of many rounds. On a machine with other load, the other rounds measure that load.
  double best_ns = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kHitsPerRound; ++i) {
      // Buffers that are used one after the other must not be neighbours in the cache.
      if (!use(static_cast<std::uint64_t>(i) * 37 % kBuffers, 0)) return fail(error);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best_ns = std::min(best_ns, took.count() / kHitsPerRound);
  }
  std::printf("{\"hitNs\":%.1f,\"hits\":%llu,\"deviceCalls\":%llu}\n", best_ns,
              static_cast<unsigned long long>(cache.counters().hits),
              static_cast<unsigned long long>(device.calls - calls_before));
  return 0;
}

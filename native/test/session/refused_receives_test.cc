// Tests a device that refuses shared receives for a while. Refused receives are posted again later, and until
// then no credits are granted for them.
#include <gtest/gtest.h>

#include <set>

#include "fabric/sim/sim.h"
#include "session/link/shared_receives.h"

namespace rdma_rpc::session::test {
namespace {

constexpr std::uint32_t kMost = 48, kStride = 128;

/// The receives that the device has accepted, by slot.
struct Posted {
  std::set<std::uint32_t> slots;
  std::size_t takes = SIZE_MAX;  ///< limit of the receives that it accepts from one post
};

class PickyQueue final : public fabric::ReceiveQueue {
 public:
  PickyQueue(std::uint32_t capacity, Posted& posted) : fabric::ReceiveQueue(capacity), posted_(posted) {}
  std::size_t post(std::span<const fabric::RecvWr> requests) override {
    const std::size_t taken = std::min(requests.size(), posted_.takes);
    for (const fabric::RecvWr& wr : requests.first(taken))
      EXPECT_TRUE(posted_.slots.insert(static_cast<std::uint32_t>(wr.wr_id)).second) << "posted twice";
    return taken;
  }

 private:
  Posted& posted_;
};

class PickyDevice final : public fabric::Device {
 public:
  PickyDevice(std::unique_ptr<fabric::Device> device, Posted& posted)
      : device_(std::move(device)), capabilities_(device_->capabilities()), posted_(posted) {
    capabilities_.max_srq_wr = 1024;
  }
  const fabric::Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<fabric::HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) override {
    return device_->alloc_memory(bytes, purpose);
  }
  std::unique_ptr<fabric::MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                               std::string* error) override {
    return device_->reg_mr(addr, length, access, error);
  }
  std::unique_ptr<fabric::MemoryWindow> alloc_mw() override { return device_->alloc_mw(); }
  std::unique_ptr<fabric::CompletionQueue> create_cq(std::uint32_t entries) override {
    return device_->create_cq(entries);
  }
  std::unique_ptr<fabric::QueuePair> create_qp(fabric::CompletionQueue& cq, const fabric::QpOptions& options,
                                               std::string* error) override {
    return device_->create_qp(cq, options, error);
  }
  std::unique_ptr<fabric::ReceiveQueue> create_receive_queue(fabric::CompletionQueue&, std::uint32_t receives,
                                                             std::string*) override {
    return std::make_unique<PickyQueue>(receives, posted_);
  }
  fabric::DeviceCounters counters() const override { return device_->counters(); }

 private:
  std::unique_ptr<fabric::Device> device_;
  fabric::Capabilities capabilities_;
  Posted& posted_;
};

class RefusedReceives : public testing::Test {
 protected:
  ~RefusedReceives() override { receives.leave_device(); }
  /// Simulates the arrival of a frame for the session.
  void comes(SharedReceives::Member& member, std::uint32_t session) {
    const std::uint32_t slot = *posted.slots.begin();
    posted.slots.erase(posted.slots.begin());
    receives.came(member, session, slot);
  }
  /// The frames that peers may send now must never exceed the posted receives.
  void expect_covered(std::initializer_list<const SharedReceives::Member*> members) {
    std::uint32_t may_come = 0;
    for (const auto* member : members) may_come += member->account.held - member->taken;
    EXPECT_LE(may_come, receives.posted());
    EXPECT_EQ(receives.posted(), posted.slots.size());
  }

  fabric::SimWorld world;
  Posted posted;
  PickyDevice device{world.open_device(), posted};
  std::unique_ptr<fabric::CompletionQueue> cq = device.create_cq(64);
  SharedReceives receives{device, *cq, kStride};
  SharedReceives::Member first, second;
};

TEST_F(RefusedReceives, OfASessionThatLeavesAreNotGrantedToOthersAndComeBack) {
  ASSERT_TRUE(receives.join(first, kMost));
  const std::uint32_t all = receives.posted();
  for (int i = 0; i < 20; ++i) comes(first, 1);
  posted.takes = 3;
  receives.leave(first, 1);
  EXPECT_EQ(receives.refused(), 17u);
  EXPECT_EQ(receives.posted(), all - 17);
  // The granted credits must not exceed the number of receives.
  posted.takes = 0;
  while (receives.join(second, kMost)) expect_covered({&second});
  EXPECT_LE(receives.posted(), all - 17);
  // The device accepts receives again, so the next post posts the refused ones, too.
  posted.takes = SIZE_MAX;
  const std::uint32_t slot = *posted.slots.begin();
  posted.slots.erase(slot);
  receives.came_for_ended_session(slot);
  EXPECT_EQ(receives.refused(), 0u);
}

TEST_F(RefusedReceives, OfASessionThatHasEndedComeBack) {
  ASSERT_TRUE(receives.join(first, kMost));
  const std::uint32_t all = receives.posted(), slot = *posted.slots.begin();
  posted.slots.erase(slot);
  posted.takes = 0;
  receives.came_for_ended_session(slot);
  EXPECT_EQ(receives.refused(), 1u);
  posted.takes = SIZE_MAX;
  comes(first, 1);
  receives.leave(first, 1);
  EXPECT_EQ(receives.refused(), 0u);
  EXPECT_EQ(receives.posted(), all);
}

/// A part of a chunk is refused. The next chunk still has its own memory, and no receive is posted twice.
TEST_F(RefusedReceives, OfANewChunkComeBackWithTheNext) {
  posted.takes = 40;
  receives.join(first, kMost);
  EXPECT_EQ(receives.refused(), kSharedChunk - 40);
  posted.takes = SIZE_MAX;
  EXPECT_TRUE(receives.join(second, kMost));
  EXPECT_EQ(receives.refused(), 0u);
  EXPECT_EQ(receives.posted() * std::size_t{kStride}, receives.registered_bytes());
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests short messages for a user that copies them. Such messages are delivered outside of the buffers of
// their receives, which stay untouched, so that a message of a few bytes allocates no page.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "fabric/shm/layout.h"
#include "fabric/shm/shm.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint32_t kReceives = 64, kSlotBytes = 1024;
constexpr std::byte kUntouched{0xee};

/// Two queue pairs of this process; `to` has all its receives posted.
class ShortApart : public testing::TestWithParam<bool> {
 protected:
  struct Side {
    std::string error;
    std::unique_ptr<Device> device = open_shm_device({}, &error);
    std::unique_ptr<CompletionQueue> cq = device->create_cq(256);
    std::unique_ptr<HostMemory> slab = device->alloc_memory(std::size_t{kReceives} * kSlotBytes, "test slab");
    std::unique_ptr<MemoryRegion> region =
        device->reg_mr(slab->data(), slab->size(), access_local_write, &error);
    std::unique_ptr<QueuePair> qp;
  };

  void SetUp() override {
    for (Side* side : {&from, &to}) {
      side->qp = side->device->create_qp(
          *side->cq, {.send_wr_max = 128, .recv_wr_max = kReceives, .short_apart = GetParam()}, &side->error);
    }
    std::fill_n(to.slab->data(), to.slab->size(), kUntouched);
    for (std::uint64_t slot = 0; slot < kReceives; ++slot) {
      const RecvWr wr{slot, {to.region->addr() + slot * kSlotBytes, kSlotBytes, to.region->lkey()}};
      ASSERT_EQ(to.qp->post_recv({&wr, 1}), 1u);
    }
    ASSERT_EQ(from.qp->connect(to.qp->local_address()), "");
    ASSERT_EQ(to.qp->connect(from.qp->local_address()), "");
  }

  static std::vector<std::byte> message(std::size_t bytes, int seed) {
    std::vector<std::byte> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      all[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed));
    return all;
  }
  void send(std::size_t bytes, int seed) {
    const std::vector<std::byte> all = message(bytes, seed);
    std::copy(all.begin(), all.end(), from.slab->data());
    const Sge sge{from.region->addr(), static_cast<std::uint32_t>(bytes), from.region->lkey()};
    SendWr wr;
    wr.sges = {&sge, 1};
    ASSERT_EQ(from.qp->post_send({&wr, 1}), 1u);
  }
  const std::byte* buffer(const Wc& wc) const { return to.slab->data() + wc.wr_id * kSlotBytes; }
  bool untouched(const Wc& wc) const {
    return std::all_of(buffer(wc), buffer(wc) + kSlotBytes,
                       [](std::byte each) { return each == kUntouched; });
  }
  static bool same(const std::byte* data, const std::vector<std::byte>& wanted) {
    return std::equal(wanted.begin(), wanted.end(), data);
  }

  Side from, to;
};

TEST_P(ShortApart, MessagesInCellsLeaveTheBufferUnchanged) {
  for (const std::uint32_t bytes : {1u, 56u, 57u, 116u, 117u, shm::kInlineMax}) {
    send(bytes, 3);
    Wc wc;
    ASSERT_EQ(to.cq->poll({&wc, 1}), 1u);
    ASSERT_EQ(wc.bytes, bytes);
    EXPECT_EQ(wc.apart != nullptr, GetParam()) << bytes;
    EXPECT_EQ(untouched(wc), GetParam()) << bytes;
    EXPECT_TRUE(same(GetParam() ? wc.apart : buffer(wc), message(bytes, 3))) << bytes;
  }
}

TEST_P(ShortApart, LongerMessagesAreInTheBuffer) {
  send(shm::kInlineMax + 1, 5);
  Wc wc;
  ASSERT_EQ(to.cq->poll({&wc, 1}), 1u);
  EXPECT_EQ(wc.apart, nullptr);
  EXPECT_TRUE(same(buffer(wc), message(shm::kInlineMax + 1, 5)));
}

/// One poll may return more messages than fit the room for short messages. The rest are in their own buffers,
/// and none overlap.
TEST_P(ShortApart, ManyMessagesOfOnePollAreComplete) {
  for (std::uint32_t i = 0; i < kReceives; ++i) send(shm::kInlineMax, static_cast<int>(i));
  std::vector<Wc> done(kReceives);
  ASSERT_EQ(to.cq->poll(done), kReceives);
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    const std::byte* data = done[i].apart != nullptr ? done[i].apart : buffer(done[i]);
    EXPECT_TRUE(same(data, message(shm::kInlineMax, static_cast<int>(i)))) << i;
  }
  EXPECT_EQ(done.front().apart != nullptr, GetParam());
  EXPECT_EQ(done.back().apart, nullptr);
}

INSTANTIATE_TEST_SUITE_P(AskedFor, ShortApart, testing::Bool());

}  // namespace
}  // namespace rdma_rpc::fabric::test

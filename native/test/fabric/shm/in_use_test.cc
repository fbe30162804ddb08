// The peer writes its in-use marker itself. Whatever key the marker names, no other queue pair of the device
// may be affected.
#include "fabric/shm/hostile.h"

namespace rdma_rpc::fabric::test {
namespace {

/// A device with two queue pairs, each with memory of its own: one is connected to an honest peer, and one to
/// a hostile peer.
struct InUse : ::testing::Test {
  const ShmOptions options{.revoke_grace_us = 100, .any_memory = false};
  ShmEnd victim{options}, honest{options}, hostile{options};
  std::unique_ptr<HostMemory> slab;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<QueuePair> other;

  void SetUp() override {
    ASSERT_EQ(victim.qp->connect(honest.qp->local_address()), "");
    ASSERT_EQ(honest.qp->connect(victim.qp->local_address()), "");
    slab = victim.device->alloc_memory(ShmEnd::kSlotBytes, "slab of the other");
    region = victim.device->reg_mr(slab->data(), slab->size(), access_local_write, &victim.error);
    other = victim.device->create_qp(*victim.cq, {.send_wr_max = 16, .recv_wr_max = 4}, &victim.error);
    const RecvWr wr{77, {region->addr(), ShmEnd::kSlotBytes, region->lkey()}};
    ASSERT_EQ(other->post_recv({&wr, 1}), 1u);
    ASSERT_EQ(other->connect(hostile.qp->local_address()), "");
    ASSERT_EQ(hostile.qp->connect(other->local_address()), "");
  }

  /// Polls until the hostile peer's queue pair has flushed its receive. Returns whether the honest peer's
  /// queue pair still works.
  bool honest_one_works() const {
    const auto end = std::chrono::steady_clock::now() + kTimeout;
    bool flushed = other->state() != QpState::err;
    Wc wc;
    while (!flushed && std::chrono::steady_clock::now() < end) {
      if (victim.cq->poll({&wc, 1}) != 0) flushed = wc.qp_num == other->qp_num();
    }
    const Sge sge = honest.sge(0, 100);
    if (!flushed || victim.qp->state() != QpState::rts || !honest.post(Opcode::send, 9, {&sge, 1}))
      return false;
    return honest.next().status == WcStatus::success && victim.next().status == WcStatus::success;
  }
};

TEST_F(InUse, OfAnotherSessionsReceivesIsIgnored) {
  RawSegment(*other).header().in_use.store(victim.slab_region->lkey());
  other->to_error();
  EXPECT_TRUE(honest_one_works());
}

TEST_F(InUse, OfAnotherSessionsWindowIsIgnored) {
  // The window lies in the same pages as receives of its own session. Those receives would fail if the pages
  // were taken away.
  std::string error;
  const auto slab_too = victim.device->reg_mr(victim.slab->data(), victim.slab->size(),
                                              access_local_write | access_mw_bind, &error);
  ASSERT_NE(slab_too, nullptr) << error;
  ASSERT_TRUE(victim.bind(*slab_too, slab_too->addr(), slab_too->length(), access_remote_read));
  RawSegment(*other).header().in_use.store(victim.window->rkey());
  victim.window.reset();
  EXPECT_TRUE(honest_one_works());
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

// Tests windows whose memory is revoked, and READs that are cancelled. When the owner's CPU serves READs, it
// can stop at any time, and the peer gets a completion instead of a refusal. When the reader's CPU writes the
// bytes of READs, it can discard them. On other fabrics nothing changes.
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {
namespace {
constexpr std::uint64_t kBytes = 4 << 20;
}

TEST_P(FabricSuite, AWindowWhoseMemoryIsRevokedGivesReadsNoByteAndTheQueuePairGoesOn) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& exposed = memory(client_, kBytes, kBindable);
  Memory& local = memory(server_, kBytes, kLocal | access_remote_write);
  MemoryWindow& mw = window(client_);
  exposed.fill(0, kBytes, 3);
  bind(client_, mw, exposed, 0, kBytes, access_remote_read);
  EXPECT_FALSE(server_.qp->revoke(mw.rkey())) << "another queue pair's window";
  EXPECT_FALSE(client_.qp->revoke(exposed.region->lkey())) << "no window";
  ASSERT_EQ(client_.qp->revoke(mw.rkey()), caps().reads_memory_late);
  const Sge sge = local.sge(0, kBytes);
  for (std::uint64_t id = 1; id < 4; ++id) {
    local.paint(0xcc);
    post(server_, request(Opcode::rdma_read, id, {&sge, 1}, exposed.addr(), mw.rkey()));
    EXPECT_EQ(expect(server_, id).memory_gone, caps().reads_memory_late);
    EXPECT_TRUE(caps().reads_memory_late ? local.untouched(0xcc) : local.holds(0, kBytes, 3));
  }
  // The window stays bound until it is invalidated, and is valid again after the next bind.
  SendWr invalidate = request(Opcode::local_inv, 4, {});
  invalidate.invalidate_rkey = mw.rkey();
  post(client_, invalidate);
  expect(client_, 4);
  bind(client_, mw, exposed, 0, kBytes, access_remote_read);
  post(server_, request(Opcode::rdma_read, 5, {&sge, 1}, exposed.addr(), mw.rkey()));
  EXPECT_FALSE(expect(server_, 5).memory_gone);
  EXPECT_TRUE(local.holds(0, kBytes, 3));
  expect_quiet();
}

TEST_P(FabricSuite, NoByteIsReadBehindTheRevocationThoughReadsAreUnderWay) {
  RDMA_RPC_NEEDS(reads_memory_late);
  connect();
  Memory& exposed = memory(client_, kBytes, kBindable);
  Memory& local = memory(server_, kBytes, kLocal);
  MemoryWindow& mw = window(client_);
  for (int polls = 0; polls < 40; ++polls) {
    SCOPED_TRACE(polls);
    exposed.paint(0x5a);
    local.paint(0);
    bind(client_, mw, exposed, 0, kBytes, access_remote_read);
    const Sge sges[] = {local.sge(0, kBytes / 2), local.sge(kBytes / 2, kBytes / 2)};
    post(server_, request(Opcode::rdma_read, 1, {&sges[0], 1}, exposed.addr(), mw.rkey()));
    post(server_, request(Opcode::rdma_read, 2, {&sges[1], 1}, exposed.addr(kBytes / 2), mw.rkey()));
    Wc wc;
    for (int i = 0; i < polls; ++i) {
      settle_without_polling();
      EXPECT_EQ(client_.cq->poll({&wc, 1}), 0u);
    }
    ASSERT_TRUE(client_.qp->revoke(mw.rkey()));
    exposed.paint(0xee);
    for (const std::uint64_t id : {1u, 2u}) {
      const bool memory_gone = expect(server_, id).memory_gone;
      EXPECT_TRUE(memory_gone || local.all((id - 1) * kBytes / 2, kBytes / 2, 0x5a));
    }
    EXPECT_EQ(std::memchr(local.data(), 0xee, kBytes), nullptr);
    SendWr invalidate = request(Opcode::local_inv, 3, {});
    invalidate.invalidate_rkey = mw.rkey();
    post(client_, invalidate);
    expect(client_, 3);
  }
  expect_quiet();
}

TEST_P(FabricSuite, AWindowWhoseMemoryIsRevokedTakesWritesThatTouchNothing) {
  RDMA_RPC_NEEDS(reads_memory_late);
  connect();
  Memory& exposed = memory(client_, kBytes, kBindable);
  Memory& local = memory(server_, kBytes, kLocal);
  MemoryWindow& mw = window(client_);
  local.paint(0x5a);
  for (int polls = 0; polls < 40; ++polls) {
    SCOPED_TRACE(polls);
    bind(client_, mw, exposed, 0, kBytes, access_remote_write);
    const Sge sges[] = {local.sge(0, kBytes / 2), local.sge(kBytes / 2, kBytes / 2)};
    post(server_, request(Opcode::rdma_write, 1, {&sges[0], 1}, exposed.addr(), mw.rkey()));
    post(server_, request(Opcode::rdma_write, 2, {&sges[1], 1}, exposed.addr(kBytes / 2), mw.rkey()));
    Wc wc;
    for (int i = 0; i < polls; ++i) {
      settle_without_polling();
      EXPECT_EQ(client_.cq->poll({&wc, 1}), 0u);
    }
    ASSERT_TRUE(client_.qp->revoke(mw.rkey()));
    exposed.paint(0xee);
    for (const std::uint64_t id : {1u, 2u}) expect(server_, id);
    EXPECT_TRUE(exposed.untouched(0xee));
    SendWr invalidate = request(Opcode::local_inv, 3, {});
    invalidate.invalidate_rkey = mw.rkey();
    post(client_, invalidate);
    expect(client_, 3);
  }
  // A key that was not revoked still works, and a request with a range that is too long is still refused.
  bind(client_, mw, exposed, 0, kBytes, access_remote_write);
  const Sge all = local.sge(0, kBytes);
  post(server_, request(Opcode::rdma_write, 4, {&all, 1}, exposed.addr(), mw.rkey()));
  expect(server_, 4);
  EXPECT_TRUE(exposed.all(0, kBytes, 0x5a));
  expect_quiet();
}

TEST_P(FabricSuite, TheMemoryOfAWindowThatIsRevokedMayGo) {
  RDMA_RPC_NEEDS(reads_memory_late);
  connect();
  auto lent = client_.device->alloc_memory(kBytes, "test");
  ASSERT_NE(lent, nullptr);
  std::string error;
  auto region = client_.device->reg_mr(lent->data(), kBytes, kBindable, &error);
  ASSERT_NE(region, nullptr) << error;
  const auto addr = reinterpret_cast<std::uint64_t>(lent->data());
  Memory& local = memory(server_, kBytes, kLocal);
  MemoryWindow &read = window(client_), &written = window(client_), &unbound = window(client_);
  post(client_, bind_wr(read, *region, addr, kBytes, access_remote_read));
  post(client_, bind_wr(written, *region, addr, kBytes, access_remote_write));
  next(client_), next(client_);
  post(client_, bind_wr(unbound, *region, addr, kBytes, access_remote_write));
  for (MemoryWindow* each : {&read, &written, &unbound}) ASSERT_TRUE(client_.qp->revoke(each->rkey()));
  region.reset();
  lent.reset();
  next(client_);
  const Sge sge = local.sge(0, kBytes);
  post(server_, request(Opcode::rdma_read, 1, {&sge, 1}, addr, read.rkey()));
  EXPECT_TRUE(expect(server_, 1).memory_gone);
  post(server_, request(Opcode::rdma_write, 2, {&sge, 1}, addr, written.rkey()));
  expect(server_, 2);
  post(server_, request(Opcode::rdma_write, 3, {&sge, 1}, addr, unbound.rkey()));
  expect(server_, 3);
  for (MemoryWindow* each : {&read, &written, &unbound}) {
    SendWr invalidate = request(Opcode::local_inv, 4, {});
    invalidate.invalidate_rkey = each->rkey();
    post(client_, invalidate);
    expect(client_, 4);
  }
  expect_quiet();
}

TEST_P(FabricSuite, AWindowMayBeRevokedBeforeItsBindIsCarriedOut) {
  RDMA_RPC_NEEDS(reads_memory_late);
  connect();
  Memory& exposed = memory(client_, 4096, kBindable);
  Memory& local = memory(server_, 4096, kLocal);
  MemoryWindow& mw = window(client_);
  local.paint(0xcc);
  post(client_, bind_wr(mw, *exposed.region, exposed.addr(), 4096, access_remote_read));
  ASSERT_TRUE(client_.qp->revoke(mw.rkey()));
  next(client_);
  const Sge sge = local.sge(0, 4096);
  post(server_, request(Opcode::rdma_read, 1, {&sge, 1}, exposed.addr(), mw.rkey()));
  EXPECT_TRUE(expect(server_, 1).memory_gone);
  EXPECT_TRUE(local.untouched(0xcc));
  expect_quiet();
}

TEST_P(FabricSuite, ReadsThatAreAbandonedWriteNoByteMoreAndTheQueuePairGoesOn) {
  RDMA_RPC_NEEDS(reads_memory_late);
  connect();
  Memory& exposed = memory(client_, kBytes, access_remote_read);
  Memory& local = memory(server_, kBytes, kLocal);
  exposed.fill(0, kBytes, 3);
  int abandoned = 0;
  for (int polls = 0; polls < 40; ++polls) {
    SCOPED_TRACE(polls);
    const Sge sges[] = {local.sge(0, kBytes / 2), local.sge(kBytes / 2, kBytes / 2)};
    for (const std::uint64_t id : {0u, 1u})
      post(server_, request(Opcode::rdma_read, id, {&sges[id], 1}, exposed.addr(id * kBytes / 2),
                            exposed.region->rkey()));
    Wc wc;
    for (int i = 0; i < polls; ++i) {
      settle_without_polling();
      EXPECT_EQ(client_.cq->poll({&wc, 1}), 0u);
    }
    // Only the first of the two READs is cancelled.
    ASSERT_TRUE(server_.qp->abandon_reads(sges[0].addr, sges[0].length));
    std::memset(local.data(), 0xcc, kBytes / 2);
    abandoned += expect(server_, 0).memory_gone ? 1 : 0;
    EXPECT_FALSE(expect(server_, 1).memory_gone);
    EXPECT_TRUE(local.all(0, kBytes / 2, 0xcc));
    EXPECT_EQ(std::memcmp(local.data() + kBytes / 2, exposed.data() + kBytes / 2, kBytes / 2), 0);
    // The memory can then be used like any other memory.
    post(server_, request(Opcode::rdma_read, 2, {&sges[0], 1}, exposed.addr(), exposed.region->rkey()));
    EXPECT_FALSE(expect(server_, 2).memory_gone);
    EXPECT_TRUE(local.holds(0, kBytes, 3));
  }
  EXPECT_GT(abandoned, 0);
  expect_quiet();
}

TEST_P(FabricSuite, TheMemoryOfReadsThatAreAbandonedMayGo) {
  RDMA_RPC_NEEDS(reads_memory_late);
  connect();
  Memory& exposed = memory(client_, kBytes, access_remote_read);
  auto target = server_.device->alloc_memory(kBytes, "test");
  ASSERT_NE(target, nullptr);
  std::string error;
  auto region = server_.device->reg_mr(target->data(), kBytes, access_local_write, &error);
  ASSERT_NE(region, nullptr) << error;
  const Sge sge{reinterpret_cast<std::uint64_t>(target->data()), kBytes, region->lkey()};
  post(server_, request(Opcode::rdma_read, 1, {&sge, 1}, exposed.addr(), exposed.region->rkey()));
  ASSERT_TRUE(server_.qp->abandon_reads(sge.addr, sge.length));
  region.reset();
  target.reset();
  EXPECT_TRUE(expect(server_, 1).memory_gone);
  expect_quiet();
}

TEST_P(FabricSuite, ADeviceThatWritesByItselfAbandonsNothing) {
  if (caps().reads_memory_late) GTEST_SKIP() << "not run: this one can";
  connect();
  Memory& local = memory(server_, 4096, kLocal);
  EXPECT_FALSE(server_.qp->abandon_reads(local.addr(), 4096));
}

}  // namespace rdma_rpc::fabric::test

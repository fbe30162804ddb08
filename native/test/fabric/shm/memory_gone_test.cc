// Tests memory that a peer has lent to a call and then freed: the READ reports that the memory is gone, and
// the connection continues.
#include <sys/mman.h>

#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {
namespace {

TEST(ShmMemoryGone, AReadOfReleasedMemoryEndsNoQueuePair) {
  ShmEnd owner, reader;
  ASSERT_EQ(owner.qp->connect(reader.qp->local_address()), "");
  ASSERT_EQ(reader.qp->connect(owner.qp->local_address()), "");
  if (!owner.device->capabilities().exposes_any_memory) {
    GTEST_SKIP() << "not run: this system forbids process_vm_readv";
  }
  constexpr std::size_t kBytes = 256 << 10;
  void* data =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  const auto lent = owner.device->reg_mr(data, kBytes, access_local_write | access_mw_bind, &owner.error);
  ASSERT_NE(lent, nullptr) << owner.error;
  ASSERT_TRUE(owner.bind(*lent, lent->addr(), kBytes, access_remote_read));
  const Sge into = reader.sge(0, kBytes);
  const auto read = [&] {
    EXPECT_TRUE(reader.post(Opcode::rdma_read, 1, {&into, 1}, lent->addr(), owner.window->rkey()));
    return reader.next();
  };
  EXPECT_FALSE(read().memory_gone);
  ASSERT_EQ(::munmap(static_cast<std::byte*>(data) + kBytes / 2, kBytes / 2), 0);
  EXPECT_TRUE(read().memory_gone) << "the second half";
  ASSERT_EQ(::munmap(data, kBytes / 2), 0);
  const Wc all = read();
  EXPECT_TRUE(all.memory_gone);
  EXPECT_EQ(all.status, WcStatus::success);
  EXPECT_EQ(reader.qp->state(), QpState::rts);
  EXPECT_EQ(owner.qp->state(), QpState::rts);
  const Sge small = owner.sge(0, 100);
  EXPECT_TRUE(owner.post(Opcode::send, 2, {&small, 1}));
  EXPECT_EQ(owner.next().status, WcStatus::success);
  EXPECT_EQ(reader.next().status, WcStatus::success);
  // An access that a key does not allow still ends both queue pairs.
  EXPECT_TRUE(reader.post(Opcode::rdma_read, 3, {&into, 1}, lent->addr() + 1, owner.window->rkey()));
  EXPECT_EQ(reader.next().status, WcStatus::rem_access_err);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

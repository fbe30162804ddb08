// Tests a peer of an older build. Such a peer is never sent a kind of message that it does not know, and none
// of its bits is mistaken for a bit of newer builds.
#include <poll.h>

#include "fabric/shm/hostile.h"
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {
namespace {

TEST(ShmOlderPeer, IsNotSentAnImmediateWithAMessage) {
  const ShmOptions options{.any_memory = false};
  ShmEnd newer{options}, older{options};
  // An owner that does not know this word leaves it at 0.
  RawSegment(*older.qp).header().features.store(0);
  ASSERT_EQ(newer.qp->connect(older.qp->local_address()), "");
  ASSERT_EQ(older.qp->connect(newer.qp->local_address()), "");
  const SendWr wr = request(Opcode::send_with_imm, 5, {});
  ASSERT_EQ(newer.qp->post_send({&wr, 1}), 1u);
  const Wc wc = newer.next();
  EXPECT_EQ(wc.wr_id, 5u);
  EXPECT_EQ(wc.status, WcStatus::loc_qp_op_err);
  EXPECT_EQ(RawSegment(*older.qp).cell(0).header.load(), 0u) << "nothing was published";
}

/// Older builds number their sleeps one by one, so every other number has the bit set.
TEST(ShmOlderPeer, IsRungWhateverTheNumberOfItsSleep) {
  for (const bool is_older : {false, true}) {
    SCOPED_TRACE(is_older ? "older" : "newer");
    ShmEnd sender, sleeper;
    if (is_older) RawSegment(*sleeper.qp).header().features.store(0);
    ASSERT_EQ(sender.qp->connect(sleeper.qp->local_address()), "");
    ASSERT_EQ(sleeper.qp->connect(sender.qp->local_address()), "");
    sleeper.post_recv(0);
    ASSERT_TRUE(sleeper.cq->arm_solicited());
    const Sge sge = sender.sge(0, 32);
    SendWr wr;
    wr.sges = {&sge, 1};
    ASSERT_EQ(sender.qp->post_send({&wr, 1}), 1u);
    pollfd bell{sleeper.cq->fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&bell, 1, 0), is_older ? 1 : 0);
  }
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

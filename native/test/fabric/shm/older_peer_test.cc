// A peer whose build does not know a kind of message: it is never sent one.
#include "fabric/shm/hostile.h"
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {
namespace {

TEST(ShmOlderPeer, IsNotSentAnImmediateWithAMessage) {
  const ShmOptions options{.any_memory = false};
  ShmEnd newer{options}, older{options};
  // As an owner leaves it that knows nothing of the word.
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

}  // namespace
}  // namespace rdma_rpc::fabric::test

// Tests whether a queue pair has messages that no poll has returned. Sessions ask this about one queue pair
// when polls are full of messages of others.
#include <gtest/gtest.h>

#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {
namespace {

void send(ShmEnd& from) {
  const Sge sge{from.region->addr(), 8, from.region->lkey()};
  SendWr wr;
  wr.sges = {&sge, 1};
  ASSERT_EQ(from.qp->post_send({&wr, 1}), 1u);
}

bool brings_one(ShmEnd& to) {
  Wc wc;
  return to.cq->poll({&wc, 1}) == 1;
}

TEST(WaitingMessages, ExistUntilAPollHasReturnedTheLastOne) {
  ShmEnd from, to;
  ASSERT_EQ(from.qp->connect(to.qp->local_address()), "");
  ASSERT_EQ(to.qp->connect(from.qp->local_address()), "");
  EXPECT_FALSE(to.qp->may_hold_messages(to.qp->message_mark()));
  send(from);
  send(from);
  EXPECT_TRUE(to.qp->may_hold_messages(to.qp->message_mark()));
  EXPECT_TRUE(brings_one(to));
  EXPECT_TRUE(to.qp->may_hold_messages(to.qp->message_mark()));
  EXPECT_TRUE(brings_one(to));
  EXPECT_FALSE(to.qp->may_hold_messages(to.qp->message_mark()));
  EXPECT_FALSE(brings_one(to));
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

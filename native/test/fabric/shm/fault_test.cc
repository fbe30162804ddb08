// Tests that a refused access ends the queue pairs of both sides, as on an RDMA device, even if the
// requester's queue pair is destroyed soon afterwards.
#include <gtest/gtest.h>

#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {
namespace {

class Fault : public testing::TestWithParam<bool> {};

TEST_P(Fault, EndsThePeerAtItsNextPoll) {
  const bool destroyed = GetParam();
  ShmEnd requester, responder;
  ASSERT_EQ(requester.qp->connect(responder.qp->local_address()), "");
  ASSERT_EQ(responder.qp->connect(requester.qp->local_address()), "");
  const Sge sge = requester.sge(0, 8);
  // The region has no remote rights.
  const std::uint64_t addr = responder.region->addr();
  ASSERT_TRUE(requester.post(Opcode::rdma_write, 1, {&sge, 1}, addr, responder.region->rkey()));
  Wc wc;
  ASSERT_EQ(requester.cq->poll({&wc, 1}), 1u);
  EXPECT_EQ(wc.status, WcStatus::rem_access_err);
  if (destroyed) requester.qp.reset();

  EXPECT_EQ(responder.qp->state(), QpState::rts);
  ASSERT_EQ(responder.cq->poll({&wc, 1}), 1u);
  EXPECT_EQ(wc.status, WcStatus::wr_flush_err);
  EXPECT_EQ(responder.qp->state(), QpState::err);
}

INSTANTIATE_TEST_SUITE_P(, Fault, testing::Values(false, true), [](const auto& info) {
  return info.param ? "WithTheRequesterDestroyed" : "WithTheRequesterInErr";
});

}  // namespace
}  // namespace rdma_rpc::fabric::test

// Tests a queue pair that its user moves from RESET to RTS, one step at a time (QpOptions::stepwise).
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

constexpr std::uint32_t kQkey = 0x77;

TEST_P(FabricSuite, AQueuePairTakesSingleSteps) {
  RDMA_RPC_NEEDS(steps);
  for (const QpType type : {QpType::rc, QpType::uc}) {
    if (type == QpType::uc && !caps().uc) continue;
    SCOPED_TRACE(to_string(type));
    recreate({.type = type, .send_wr_max = 4, .recv_wr_max = 4, .stepwise = true});
    Memory& in = memory(server_, 64, kLocal);
    Memory& out = memory(client_, 64, kLocal);
    const RecvWr early{9, in.sge(0, 64)};
    EXPECT_EQ(server_.qp->state(), QpState::reset);
    EXPECT_EQ(server_.qp->post_recv({&early, 1}), 0u) << "a queue pair in RESET takes no receive";
    EXPECT_NE(server_.qp->move_to(QpState::rts), "") << "steps cannot be left out";
    for (Side* side : {&client_, &server_}) {
      ASSERT_EQ(side->qp->move_to(QpState::init), "");
      EXPECT_EQ(side->qp->state(), QpState::init);
    }
    const auto client_address = client_.qp->local_address();
    post_recv(server_, 1, in.sge(0, 64));
    ASSERT_EQ(client_.qp->connect(address_of(*server_.qp)), "");
    ASSERT_EQ(server_.qp->connect(client_address), "");
    settle();
    EXPECT_EQ(client_.qp->state(), QpState::rtr) << "it waits for its user";
    const Sge sge = out.sge(0, 8);
    const SendWr wr = request(Opcode::send, 2, {&sge, 1});
    EXPECT_EQ(client_.qp->post_send({&wr, 1}), 0u) << "a queue pair in RTR does not send";
    ASSERT_EQ(client_.qp->move_to(QpState::rts), "");
    out.fill(0, 8, 5);
    post(client_, wr);
    expect(server_, 1);
    expect(client_, 2);
    EXPECT_EQ(server_.qp->state(), QpState::rtr) << "it has received in RTR";
    EXPECT_TRUE(in.holds(0, 8, 5));
    ASSERT_EQ(server_.qp->move_to(QpState::rts), "");
    post_recv(client_, 3, out.sge(0, 64));
    post(server_, request(Opcode::send, 4, {}));
    expect(client_, 3);
    expect(server_, 4);
    expect_quiet();
  }
}

TEST_P(FabricSuite, AUdQueuePairTakesSingleSteps) {
  RDMA_RPC_NEEDS(steps);
  RDMA_RPC_NEEDS(ud);
  recreate({.type = QpType::ud, .qkey = kQkey, .send_wr_max = 4, .recv_wr_max = 4, .stepwise = true});
  for (Side* side : {&client_, &server_}) {
    ASSERT_EQ(side->qp->move_to(QpState::init), "");
    ASSERT_EQ(side->qp->connect({}), "");
    EXPECT_EQ(side->qp->state(), QpState::rtr);
  }
  ASSERT_EQ(client_.qp->move_to(QpState::rts), "");
  Memory& in = memory(server_, 64, kLocal);
  post_recv(server_, 1, in.sge(0, 64));
  std::string error;
  const auto to_server = client_.device->create_ah({.gid = server_.device->gid()}, &error);
  ASSERT_NE(to_server, nullptr) << error;
  SendWr wr = request(Opcode::send, 2, {});
  wr.ud = {to_server.get(), server_.qp->qp_num(), kQkey};
  post(client_, wr);
  expect(server_, 1);
  expect(client_, 2);
}

TEST_P(FabricSuite, AStepwiseQueuePairConnectsToAnother) {
  RDMA_RPC_NEEDS(steps);
  std::string error;
  const auto stepwise =
      client_.device->create_qp(*client_.cq, {.send_wr_max = 4, .recv_wr_max = 4, .stepwise = true}, &error);
  ASSERT_NE(stepwise, nullptr) << error;
  ASSERT_EQ(stepwise->move_to(QpState::init), "");
  const auto address = stepwise->local_address();
  ASSERT_EQ(stepwise->connect(address_of(*server_.qp)), "");
  ASSERT_EQ(stepwise->move_to(QpState::rts), "");
  ASSERT_EQ(server_.qp->connect(address), "");
  ASSERT_TRUE(comes_up(*server_.qp));
  post_recv(server_, 1, {});
  const SendWr wr = request(Opcode::send, 2, {});
  ASSERT_EQ(stepwise->post_send({&wr, 1}), 1u);
  expect(server_, 1);
  expect(client_, 2);
}

}  // namespace rdma_rpc::fabric::test

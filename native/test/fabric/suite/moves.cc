// Tests the states to which a user moves a queue pair, the event of a shared receive queue that runs low, and
// multicast.
#include <functional>

#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

/// Returns the next event of this device. When none arrives, returns an event of kind qp_fatal with number 0.
AsyncEvent next_event(Device& device, const std::function<void()>& settle) {
  AsyncEvent event;
  for (int i = 0; i < 1000; ++i) {
    if (device.poll_events({&event, 1}) == 1) return event;
    settle();
  }
  return {};
}

TEST_P(FabricSuite, AQueuePairInSqdHoldsItsSendsAndGoesOnReceiving) {
  RDMA_RPC_NEEDS(drains);
  connect();
  Memory& in = memory(server_, 64, kLocal);
  Memory& answer = memory(client_, 64, kLocal);
  ASSERT_EQ(client_.qp->move_to(QpState::sqd), "");
  EXPECT_EQ(client_.qp->state(), QpState::sqd);
  const AsyncEvent event = next_event(*client_.device, [this] {
    settle();
    client_.cq->acknowledge();
  });
  EXPECT_EQ(event.kind, AsyncEvent::Kind::sq_drained) << to_string(event.kind);
  EXPECT_EQ(event.qp_num, client_.qp->qp_num());
  post_recv(server_, 1, in.sge(0, 64));
  post(client_, request(Opcode::send, 2, {}));
  settle();
  EXPECT_TRUE(server_.completions.empty()) << "it is held";
  post_recv(client_, 3, answer.sge(0, 64));
  post(server_, request(Opcode::send, 4, {}));
  expect(client_, 3);
  expect(server_, 4);
  ASSERT_EQ(client_.qp->move_to(QpState::rts), "");
  expect(server_, 1);
  expect(client_, 2);
  expect_quiet();
}

TEST_P(FabricSuite, MovesThatAQueuePairCannotMakeAreRefused) {
  for (const QpState state : {QpState::rtr, QpState::sqe, QpState::err, QpState::init, QpState::rts})
    EXPECT_NE(client_.qp->move_to(state), "") << to_string(state);
  EXPECT_EQ(client_.qp->state(), QpState::init);
  connect();
  EXPECT_NE(client_.qp->move_to(QpState::init), "");
  EXPECT_EQ(client_.qp->state(), QpState::rts);
}

TEST_P(FabricSuite, AQueuePairThatWasResetConnectsAgain) {
  RDMA_RPC_NEEDS(resets);
  connect();
  Memory& in = memory(server_, 64, kAllRights);
  Memory& out = memory(client_, 64, kLocal);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    post_recv(server_, 1, in.sge(0, 64));  // never used, because the reset drops it
    client_.qp->to_error();
    server_.qp->to_error();
    settle();
    for (Side* side : {&client_, &server_}) {
      side->completions.clear();
      ASSERT_EQ(side->qp->move_to(QpState::reset), "");
      EXPECT_EQ(side->qp->state(), QpState::reset);
      const SendWr wr = request(Opcode::send, 9, {});
      EXPECT_EQ(side->qp->post_send({&wr, 1}), 0u);
      ASSERT_EQ(side->qp->move_to(QpState::init), "");
      EXPECT_EQ(side->qp->state(), QpState::init);
    }
    connect();
    out.fill(0, 64, round);
    post_recv(server_, 10, in.sge(0, 64));
    const Sge sge = out.sge(0, 64);
    post(client_, request(Opcode::send, 11, {&sge, 1}));
    expect(server_, 10);
    expect(client_, 11);
    EXPECT_TRUE(in.holds(0, 64, round));
    expect_quiet();
  }
}

TEST_P(FabricSuite, AResetEndsTheWindowsOfAQueuePair) {
  RDMA_RPC_NEEDS(resets);
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& target = memory(server_, 64, kBindable);
  Memory& out = memory(client_, 64, kLocal);
  MemoryWindow& window = this->window(server_);
  bind(server_, window, target, 0, 64, access_remote_write);
  const std::uint32_t key = window.rkey();
  for (Side* side : {&client_, &server_}) {
    ASSERT_EQ(side->qp->move_to(QpState::reset), "");
    ASSERT_EQ(side->qp->move_to(QpState::init), "");
  }
  connect();
  const Sge sge = out.sge(0, 8);
  post(client_, request(Opcode::rdma_write, 1, {&sge, 1}, target.addr(), key));
  expect(client_, 1, WcStatus::rem_access_err);
  EXPECT_TRUE(target.all(0, 64, 0));
}

TEST_P(FabricSuite, AFailedSendOfUdStopsSendsOnly) {
  RDMA_RPC_NEEDS(ud);
  RDMA_RPC_NEEDS(drains);
  recreate({.type = QpType::ud, .qkey = 3, .send_wr_max = 16, .recv_wr_max = 16});
  ASSERT_EQ(client_.qp->connect({}), "");
  ASSERT_EQ(server_.qp->connect({}), "");
  Memory& in = memory(client_, 64, kLocal);
  const auto to_client = server_.device->create_ah({.gid = client_.device->gid()}, nullptr);
  const auto to_server = client_.device->create_ah({.gid = server_.device->gid()}, nullptr);
  post_recv(client_, 1, in.sge(0, 64));
  SendWr good = request(Opcode::send, 3, {}), bad = request(Opcode::send, 2, {});
  good.ud = {to_server.get(), server_.qp->qp_num(), 3};
  bad.ud = {nullptr, server_.qp->qp_num(), 3};
  post(client_, bad);
  post(client_, good);
  EXPECT_EQ(expect_error(client_, 2).status, WcStatus::loc_qp_op_err);
  EXPECT_EQ(expect_error(client_, 3).status, WcStatus::wr_flush_err);
  EXPECT_EQ(client_.qp->state(), QpState::sqe);
  SendWr answer = request(Opcode::send, 4, {});
  answer.ud = {to_client.get(), client_.qp->qp_num(), 3};
  post(server_, answer);
  expect(server_, 4);
  expect(client_, 1);
  ASSERT_EQ(client_.qp->move_to(QpState::rts), "");
  post(client_, good);
  expect(client_, 3);
  expect_quiet();
}

TEST_P(FabricSuite, ASharedReceiveQueueTellsOnceWhenItRunsLow) {
  RDMA_RPC_NEEDS(srq_limit);
  ReceiveQueue& shared = share_receives(8);
  const Pair pair = another_pair(7);
  Memory& in = memory(server_, 8 * 64, kLocal);
  const auto post_shared = [&](std::uint64_t id) {
    const RecvWr wr{id, in.sge(64 * (id % 8), 64)};
    ASSERT_EQ(shared.post({&wr, 1}), 1u);
  };
  for (std::uint64_t id = 0; id < 8; ++id) post_shared(id);
  EXPECT_NE(shared.arm_limit(9), "") << "more than it holds";
  ASSERT_EQ(shared.arm_limit(6), "");
  AsyncEvent event;
  const auto take = [&] {
    post(*pair.client, request(Opcode::send, 1, {}));
    expect(client_, 1);
    next(server_);
    server_.cq->acknowledge();
  };
  take();
  take();
  EXPECT_EQ(server_.device->poll_events({&event, 1}), 0u) << "6 are posted";
  take();
  event = next_event(*server_.device, [this] {
    settle();
    server_.cq->acknowledge();
  });
  EXPECT_EQ(event.kind, AsyncEvent::Kind::srq_limit_reached);
  EXPECT_EQ(event.receives, &shared);
  take();
  settle();
  EXPECT_EQ(server_.device->poll_events({&event, 1}), 0u) << "once";
}

TEST_P(FabricSuite, ADatagramToAGroupReachesThoseThatHaveJoined) {
  RDMA_RPC_NEEDS(multicast);
  constexpr std::uint32_t kQkey = 11;
  const QpOptions options{.type = QpType::ud, .qkey = kQkey, .send_wr_max = 16, .recv_wr_max = 16};
  recreate(options);
  ASSERT_EQ(client_.qp->connect({}), "");
  ASSERT_EQ(server_.qp->connect({}), "");
  std::string error;
  const auto second = server_.device->create_qp(*server_.cq, options, &error);
  ASSERT_EQ(second->connect({}), "");
  Memory& in = memory(server_, 256, kLocal);
  const Gid group = group_of_tests();
  const auto to_group = client_.device->create_ah({.gid = group}, &error);
  ASSERT_NE(to_group, nullptr) << error;
  const auto send = [&](std::uint32_t qpn, std::uint32_t qkey) {
    SendWr wr = request(Opcode::send, 1, {});
    wr.ud = {to_group.get(), qpn, qkey};
    post(client_, wr);
    expect(client_, 1);
    settle();
    return std::exchange(server_.completions, {});
  };
  for (std::uint64_t id = 0; id < 2; ++id) post_recv(server_, id, in.sge(0, 64));
  const RecvWr wr{10, in.sge(128, 64)};
  ASSERT_EQ(second->post_recv({&wr, 1}), 1u);

  EXPECT_TRUE(send(kMulticastQpn, kQkey).empty()) << "nobody has joined";
  EXPECT_NE(server_.qp->attach_multicast(server_.device->gid()), "") << "no group";
  EXPECT_NE(server_.qp->detach_multicast(group), "") << "not joined";
  ASSERT_EQ(server_.qp->attach_multicast(group), "");
  ASSERT_EQ(server_.qp->attach_multicast(group), "");
  EXPECT_TRUE(send(kMulticastQpn, kQkey ^ 1u).empty()) << "another Q_Key";
  // IBTA demands that a datagram to a group with another queue pair number is dropped. Soft-RoCE delivers it.
  for (const Wc& wc : send(server_.qp->qp_num(), kQkey)) {
    EXPECT_TRUE(caps().pins_memory) << "not to the group's queue pair number";
    post_recv(server_, wc.wr_id, in.sge(0, 64));
  }
  auto came = send(kMulticastQpn, kQkey);
  ASSERT_EQ(came.size(), 1u) << "once, although it has joined twice";
  EXPECT_EQ(came[0].qp_num, server_.qp->qp_num());
  EXPECT_EQ(came[0].src_qp, client_.qp->qp_num());
  // On RoCE v2 over IPv4 the header has only these bytes of the group.
  EXPECT_EQ(std::memcmp(in.data() + kGrhDestinationGid + 12, group.data() + 12, 4), 0);
  ASSERT_EQ(second->attach_multicast(group), "");
  EXPECT_EQ(send(kMulticastQpn, kQkey).size(), 2u);
  ASSERT_EQ(server_.qp->detach_multicast(group), "");
  EXPECT_TRUE(send(kMulticastQpn, kQkey).empty()) << "the second has no receive left";
}

}  // namespace rdma_rpc::fabric::test

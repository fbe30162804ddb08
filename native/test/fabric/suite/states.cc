// Tests the states of a queue pair, connecting with valid and invalid addresses, and the effect of to_error()
// on outstanding work.
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {
namespace {

/// A device gives up after its retries. A connection manager may report the peer's end before that.
bool tells_of_a_gone_peer(WcStatus status) {
  return status == WcStatus::retry_exc_err || status == WcStatus::rem_abort_err ||
         status == WcStatus::wr_flush_err;
}

}  // namespace

TEST_P(FabricSuite, AQueuePairStartsInInitAndTakesReceives) {
  EXPECT_EQ(client_.qp->state(), QpState::init);
  EXPECT_NE(client_.qp->qp_num(), 0u);
  Memory& in = memory(client_, 64, kLocal);
  post_recv(client_, 1, in.sge(0, 64));
  expect_quiet();
}

TEST_P(FabricSuite, ConnectingTakesEachSideToRts) {
  connect();
  EXPECT_EQ(client_.qp->state(), QpState::rts);
  EXPECT_EQ(server_.qp->state(), QpState::rts);
}

TEST_P(FabricSuite, AddressesFitTheirLimit) {
  const auto address = client_.qp->local_address();
  EXPECT_GT(address.size(), 0u);
  EXPECT_LE(address.size(), 512u);
  EXPECT_NE(address, server_.qp->local_address());
}

TEST_P(FabricSuite, ConnectingTwiceIsRefused) {
  connect();
  EXPECT_NE(client_.qp->connect(address_of(*server_.qp)), "");
}

TEST_P(FabricSuite, AnAddressOfTheWrongShapeIsRefusedWithAReason) {
  const auto good = server_.qp->local_address();
  std::vector<std::vector<std::byte>> bad;
  for (std::size_t length = 0; length < good.size(); ++length) {
    bad.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
  }
  for (std::size_t length : {std::size_t{1}, good.size(), std::size_t{512}, std::size_t{4096}}) {
    bad.emplace_back(length, std::byte{0});
    bad.emplace_back(length, std::byte{0xff});
  }
  std::string error;
  for (const auto& address : bad) {
    SCOPED_TRACE(address.size());
    const auto qp = client_.device->create_qp(*client_.cq, {.send_wr_max = 4, .recv_wr_max = 4}, &error);
    EXPECT_NE(qp->connect(address), "");
    EXPECT_EQ(qp->state(), QpState::err);
  }
}

TEST_P(FabricSuite, AnAddressWithAFlippedBitIsRefusedOrLeadsNowhere) {
  const auto good = address_of(*server_.qp);
  std::string error;
  for (std::size_t bit = 0; bit < good.size() * 8; bit += case_stride()) {
    auto address = good;
    address[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    const auto qp = client_.device->create_qp(*client_.cq, {.send_wr_max = 4, .recv_wr_max = 4}, &error);
    const std::string reason = qp->connect(address);
    // When connecting needs the network, the result arrives later.
    EXPECT_EQ(qp->state() == QpState::err, !reason.empty()) << "bit " << bit << ": " << reason;
  }
  // The server's queue pair is not affected.
  connect();
  EXPECT_EQ(server_.qp->state(), QpState::rts);
}

TEST_P(FabricSuite, TheAddressOfADestroyedQueuePairIsRefusedOrLeadsNowhere) {
  const auto address = address_of(*server_.qp);
  server_.qp.reset();
  // Across a network, only a sent packet reveals that the peer is gone.
  if (client_.qp->connect(address).empty() && comes_up(*client_.qp)) {
    post(client_, request(Opcode::send, 1, {}));
    expect_error(client_, 1);
  }
  EXPECT_EQ(client_.qp->state(), QpState::err);
}

TEST_P(FabricSuite, NothingIsSentBeforeConnecting) {
  const SendWr wr = request(Opcode::send, 1, {});
  EXPECT_EQ(client_.qp->post_send({&wr, 1}), 0u);
  expect_quiet();
  post_recv(server_, 2, {});
  connect();
  post(client_, wr);
  expect(client_, 1);
  expect(server_, 2);
}

TEST_P(FabricSuite, ToErrorFlushesEverythingInOrder) {
  RDMA_RPC_NEEDS(names_refusals);
  // If possible, the server has not connected yet, so that the client's messages stay outstanding.
  if (!connect_client_alone()) {
    ASSERT_EQ(server_.qp->connect(client_.qp->local_address()), "");
    ASSERT_TRUE(comes_up(*client_.qp));
  }
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(client_, 64, kLocal);
  const Sge sge = out.sge(0, 8);
  for (std::uint64_t i = 0; i < 8; ++i) post_recv(client_, 100 + i, in.sge(0, 64));
  for (std::uint64_t i = 0; i < 8; ++i) {
    SendWr wr = request(i % 2 == 0 ? Opcode::send : Opcode::rdma_write, i, {&sge, 1});
    wr.signaled = i == 7;
    post(client_, wr);
  }
  client_.qp->to_error();
  EXPECT_EQ(client_.qp->state(), QpState::err);
  std::vector<std::uint64_t> sends, receives;
  for (int i = 0; i < 16; ++i) {
    const Wc wc = next(client_);
    // By now the device may know that the peer has no receive for the first message.
    if (wc.wr_id == 0) {
      EXPECT_NE(wc.status, WcStatus::success);
    } else {
      EXPECT_EQ(wc.status, WcStatus::wr_flush_err);
    }
    (wc.wr_id < 100 ? sends : receives).push_back(wc.wr_id);
  }
  EXPECT_EQ(sends, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(receives, (std::vector<std::uint64_t>{100, 101, 102, 103, 104, 105, 106, 107}));
  client_.qp->to_error();
  expect_quiet();
}

TEST_P(FabricSuite, ReceivesMayBeFlushedTogether) {
  recreate({.send_wr_max = 4, .recv_wr_max = 16, .flush_together = true});
  connect();
  Memory& in = memory(client_, 64, kLocal);
  constexpr std::uint32_t kReceives = 16;
  for (std::uint32_t i = 0; i < kReceives; ++i) post_recv(client_, i, in.sge(0, 64));
  client_.qp->to_error();
  for (std::uint32_t flushed = 0; flushed < kReceives;) {
    const Wc wc = expect(client_, flushed, WcStatus::wr_flush_err);
    ASSERT_GE(wc.receives, 1u);
    flushed += wc.receives;
    EXPECT_LE(flushed, kReceives);
  }
  // The slots of the flushed receives are free again.
  post_recv(client_, 90, in.sge(0, 64));
  EXPECT_EQ(expect(client_, 90, WcStatus::wr_flush_err).receives, 1u);
  expect_quiet();
}

TEST_P(FabricSuite, RequestsCarriedOutWithoutASignalHoldUpNoFlush) {
  connect();
  for (std::uint64_t i = 0; i < 3; ++i) post_recv(server_, 10 + i, {});
  post_recv(client_, 20, {});
  for (std::uint64_t i = 0; i < 3; ++i) {
    SendWr wr = request(Opcode::send, i, {});
    wr.signaled = false;
    post(client_, wr);
    expect(server_, 10 + i);
  }
  settle();  // by now the client's device has the acknowledgements, although no request asked for them
  client_.qp->to_error();
  post(client_, request(Opcode::send, 3, {}));
  // Unsignaled requests may be flushed, or may get no completion.
  for (bool sent = false, received = false; !sent || !received;) {
    const Wc wc = next(client_);
    ASSERT_EQ(wc.status, WcStatus::wr_flush_err);
    sent |= wc.wr_id == 3;
    received |= wc.wr_id == 20;
  }
  expect_quiet();
}

TEST_P(FabricSuite, APostInErrorFlushes) {
  connect();
  client_.qp->to_error();
  Memory& mem = memory(client_, 64, kLocal);
  const Sge sge = mem.sge(0, 8);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    post(client_, request(Opcode::send, i, {&sge, 1}));
    expect(client_, i, WcStatus::wr_flush_err);
    post_recv(client_, 10 + i, sge);
    expect(client_, 10 + i, WcStatus::wr_flush_err);
  }
  expect_quiet();
}

TEST_P(FabricSuite, APostInErrorFlushesAfterUnsignaledRequests) {
  connect();
  Memory& in = memory(server_, 64, kLocal);
  post_recv(server_, 9, in.sge(0, 64));
  SendWr silent = request(Opcode::send, 1, {});
  silent.signaled = false;
  post(client_, silent);
  expect(server_, 9);
  client_.qp->to_error();
  for (std::uint64_t i = 2; i <= 4; ++i) post(client_, request(Opcode::send, i, {}));
  Wc first = next(client_);
  // Over a network the device may not know yet that the peer has received the first message.
  if (first.wr_id == 1) first = next(client_);
  EXPECT_EQ(first.wr_id, 2u);
  EXPECT_EQ(first.status, WcStatus::wr_flush_err);
  for (std::uint64_t i = 3; i <= 4; ++i) expect(client_, i, WcStatus::wr_flush_err);
  expect_quiet();
}

TEST_P(FabricSuite, APeerInErrorAnswersNothing) {
  RDMA_RPC_NEEDS(names_refusals);
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kAllRights);
  post_recv(server_, 1, in.sge(0, 64));
  server_.qp->to_error();
  expect(server_, 1, WcStatus::wr_flush_err);
  in.paint(0xee);
  const Sge sge = out.sge(0, 8);
  post(client_, request(Opcode::rdma_write, 2, {&sge, 1}, in.addr(), in.rkey()));
  post(client_, request(Opcode::send, 3, {&sge, 1}));
  const WcStatus status = expect_error(client_, 2).status;
  EXPECT_TRUE(tells_of_a_gone_peer(status)) << to_string(status);
  expect(client_, 3, WcStatus::wr_flush_err);
  EXPECT_TRUE(in.untouched(0xee));
  expect_quiet();
}

TEST_P(FabricSuite, ADestroyedPeerAnswersNothing) {
  RDMA_RPC_NEEDS(names_refusals);
  connect();
  Memory& out = memory(client_, 64, kLocal);
  server_.qp.reset();
  const Sge sge = out.sge(0, 8);
  post(client_, request(Opcode::send, 2, {&sge, 1}));
  const WcStatus status = expect_error(client_, 2).status;
  EXPECT_TRUE(tells_of_a_gone_peer(status)) << to_string(status);
  EXPECT_EQ(client_.qp->state(), QpState::err);
}

TEST_P(FabricSuite, RequestsWaitingForAPeerEndWithIt) {
  for (const bool destroyed : {true, false}) {
    recreate({.send_wr_max = 8, .recv_wr_max = 8});
    if (!connect_client_alone()) GTEST_SKIP() << "not run: both sides come up together here";
    post(client_, request(Opcode::send, 1, {}));
    if (destroyed) {
      server_.qp.reset();
    } else {
      server_.qp->to_error();
    }
    expect_error(client_, 1);
    EXPECT_EQ(client_.qp->state(), QpState::err);
  }
}

TEST_P(FabricSuite, QueuePairsMayBeDestroyedInAnyOrderWithWorkOutstanding) {
  for (const bool client_first : {true, false}) {
    for (const bool polled : {true, false}) {
      recreate({.send_wr_max = 8, .recv_wr_max = 8});
      connect();
      for (Side* side : {&client_, &server_}) {
        Memory& mem = memory(*side, 64, kLocal);
        const Sge sge = mem.sge(0, 64);
        for (std::uint64_t i = 0; i < 4; ++i) post_recv(*side, i, sge);
        post(*side, request(Opcode::send, 10, {&sge, 1}));
      }
      if (polled) settle();
      (client_first ? client_ : server_).qp.reset();
      (client_first ? server_ : client_).qp.reset();
      // Unpolled work was dropped with the queue pairs.
      client_.completions.clear();
      server_.completions.clear();
      expect_quiet();
    }
  }
}

}  // namespace rdma_rpc::fabric::test

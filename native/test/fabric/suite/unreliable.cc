// Tests UC and UD on a network that loses nothing. The tests check which messages arrive, which requests are
// refused at their sender, and which messages are dropped.
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

constexpr std::uint32_t kQkey = 0x1234'5678;
constexpr std::uint32_t kTarget = access_local_write | access_remote_write;

SendWr datagram(std::uint64_t wr_id, std::span<const Sge> sges, const AddressHandle* ah, const QueuePair& to,
                std::uint32_t qkey = kQkey) {
  SendWr wr = request(Opcode::send, wr_id, sges);
  wr.ud = {ah, to.qp_num(), qkey};
  return wr;
}

TEST_P(FabricSuite, UcCarriesSendsAndWrites) {
  RDMA_RPC_NEEDS(uc);
  recreate({.type = QpType::uc, .send_wr_max = 16, .recv_wr_max = 16});
  connect();
  constexpr std::uint64_t kBytes = 20'000;
  Memory& out = memory(client_, kBytes, kLocal);
  Memory& in = memory(server_, kBytes, kTarget);
  std::uint32_t seed = 0;
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{8}, kBytes}) {
    for (const Opcode opcode : {Opcode::send, Opcode::send_with_imm, Opcode::rdma_write_with_imm}) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes, opcode " + std::to_string(static_cast<int>(opcode)));
      out.fill(0, bytes, ++seed);
      in.paint(0xee);
      post_recv(server_, seed, in.sge(0, kBytes));
      const Sge sge = out.sge(0, bytes);
      SendWr wr = request(opcode, seed, {&sge, 1}, in.addr(), in.rkey());
      wr.imm = 99;
      post(client_, wr);
      const Wc wc = expect(server_, seed);
      EXPECT_EQ(wc.opcode, opcode == Opcode::rdma_write_with_imm ? Opcode::recv_rdma_with_imm : Opcode::recv);
      EXPECT_EQ(wc.bytes, bytes);
      EXPECT_EQ(wc.has_imm, opcode != Opcode::send);
      EXPECT_EQ(wc.imm, wc.has_imm ? 99u : 0u);
      EXPECT_FALSE(wc.has_grh);
      EXPECT_TRUE(in.holds(0, bytes, seed) && in.all(bytes, kBytes - bytes, 0xee));
      expect(client_, seed);
    }
  }
  expect_quiet();
}

TEST_P(FabricSuite, UcDropsWhatThePeerRefusesAndGoesOn) {
  RDMA_RPC_NEEDS(uc);
  recreate({.type = QpType::uc, .send_wr_max = 16, .recv_wr_max = 16});
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kTarget);
  in.paint(0xee);
  const Sge sge = out.sge(0, 64);
  post(client_, request(Opcode::send, 1, {&sge, 1}));  // finds no receive
  expect(client_, 1);
  post(client_, request(Opcode::rdma_write, 2, {&sge, 1}, in.addr(), in.rkey() ^ 1u));
  expect(client_, 2);
  post(client_, request(Opcode::rdma_write, 3, {&sge, 1}, in.addr(8), in.rkey()));  // ends behind the region
  expect(client_, 3);
  settle();
  EXPECT_TRUE(in.untouched(0xee));
  EXPECT_EQ(server_.qp->state(), QpState::rts);
  out.fill(0, 64, 5);
  post_recv(server_, 4, in.sge(0, 64));
  post(client_, request(Opcode::send, 4, {&sge, 1}));
  expect(server_, 4);
  expect(client_, 4);
  EXPECT_TRUE(in.holds(0, 64, 5));
  expect_quiet();
}

TEST_P(FabricSuite, UcHasNeitherReadsNorAtomics) {
  RDMA_RPC_NEEDS(uc);
  for (const Opcode opcode : {Opcode::rdma_read, Opcode::atomic_fetch_and_add, Opcode::send_with_inv}) {
    recreate({.type = QpType::uc, .send_wr_max = 16, .recv_wr_max = 16});
    connect();
    Memory& local = memory(client_, 8, kTarget);
    Memory& target = memory(server_, 8, kAllRights);
    const Sge sge = local.sge(0, 8);
    post(client_, request(opcode, 1, {&sge, 1}, target.addr(), target.rkey()));
    EXPECT_EQ(expect_error(client_, 1).status, WcStatus::loc_qp_op_err);
  }
}

TEST_P(FabricSuite, AnRcAndAUcQueuePairDoNotConnect) {
  RDMA_RPC_NEEDS(uc);
  std::string error;
  const auto uc = client_.device->create_qp(*client_.cq, {.type = QpType::uc}, &error);
  ASSERT_NE(uc, nullptr) << error;
  const std::string why = uc->connect(address_of(*server_.qp));
  EXPECT_NE(why, "");
  EXPECT_EQ(uc->state(), QpState::err);
}

/// Sets up both sides of a UD test. Each side gets a queue pair in RTS with the Q_Key of this file, and an
/// address handle of the other side.
#define UD_PAIR()                                                                           \
  RDMA_RPC_NEEDS(ud);                                                                       \
  recreate({.type = QpType::ud, .qkey = kQkey, .send_wr_max = 16, .recv_wr_max = 16});      \
  ASSERT_EQ(client_.qp->connect({}), "");                                                   \
  ASSERT_EQ(server_.qp->connect({}), "");                                                   \
  std::string error;                                                                        \
  const auto to_server = client_.device->create_ah({.gid = server_.device->gid()}, &error); \
  ASSERT_NE(to_server, nullptr) << error;                                                   \
  EXPECT_EQ(to_server->attr().gid, server_.device->gid())

TEST_P(FabricSuite, ADatagramArrivesBehindItsHeaderAndCanBeAnswered) {
  UD_PAIR();
  const std::uint64_t longest = caps().max_datagram_bytes;
  Memory& out = memory(client_, longest, kLocal);
  Memory& in = memory(server_, kGrhBytes + longest, kLocal);
  std::uint32_t seed = 0;
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, longest}) {
    SCOPED_TRACE(bytes);
    out.fill(0, bytes, ++seed);
    in.paint(0xee);
    post_recv(server_, seed, in.sge(0, kGrhBytes + longest));
    const Sge sge = out.sge(0, bytes);
    SendWr wr = datagram(seed, {&sge, 1}, to_server.get(), *server_.qp);
    wr.opcode = seed % 2 == 0 ? Opcode::send_with_imm : Opcode::send;
    wr.imm = 0xabcd;
    post(client_, wr);
    expect(client_, seed);
    const Wc wc = expect(server_, seed);
    EXPECT_EQ(wc.opcode, Opcode::recv);
    EXPECT_EQ(wc.bytes, kGrhBytes + bytes);
    EXPECT_EQ(wc.src_qp, client_.qp->qp_num());
    EXPECT_EQ(wc.has_imm, seed % 2 == 0);
    EXPECT_EQ(wc.imm, seed % 2 == 0 ? 0xabcdu : 0u);
    EXPECT_TRUE(in.holds(kGrhBytes, bytes, seed) && in.all(kGrhBytes + bytes, longest - bytes, 0xee));

    const auto back = server_.device->create_ah_from(wc, in.data(), &error);
    ASSERT_NE(back, nullptr) << error;
    Memory& answer = memory(client_, kGrhBytes, kLocal);
    post_recv(client_, 100, answer.sge(0, kGrhBytes));
    SendWr reply = request(Opcode::send, 101, {});
    reply.ud = {back.get(), wc.src_qp, kQkey};
    post(server_, reply);
    expect(server_, 101);
    EXPECT_EQ(expect(client_, 100).src_qp, server_.qp->qp_num());
  }
  expect_quiet();
}

TEST_P(FabricSuite, ADatagramThatNobodyTakesIsDropped) {
  UD_PAIR();
  Memory& in = memory(server_, 64, kLocal);
  in.paint(0xee);
  const auto lost = [&](const SendWr& wr) {
    post(client_, wr);
    EXPECT_EQ(expect(client_, wr.wr_id).status, WcStatus::success);
    settle();
    EXPECT_TRUE(server_.completions.empty());
    EXPECT_EQ(server_.qp->state(), QpState::rts);
  };
  lost(datagram(1, {}, to_server.get(), *server_.qp));  // the receiver has no receive
  post_recv(server_, 7, in.sge(0, 64));
  lost(datagram(2, {}, to_server.get(), *server_.qp, kQkey ^ 1u));
  SendWr nowhere = datagram(3, {}, to_server.get(), *server_.qp);
  nowhere.ud.remote_qpn = 0xfffff0;
  lost(nowhere);
  Gid other = server_.device->gid();
  other[9] ^= std::byte{1};
  const auto elsewhere = client_.device->create_ah({.gid = other}, &error);
  // A device may look for the port when the handle is made.
  EXPECT_EQ(elsewhere == nullptr, !error.empty()) << error;
  if (elsewhere != nullptr) lost(datagram(4, {}, elsewhere.get(), *server_.qp));
  EXPECT_TRUE(in.untouched(0xee));

  post(client_, datagram(5, {}, to_server.get(), *server_.qp));
  expect(client_, 5);
  EXPECT_EQ(expect(server_, 7).bytes, kGrhBytes);
  // When the top bit of the Q_Key is set, the Q_Key of the sending queue pair is used.
  post_recv(server_, 8, in.sge(0, 64));
  post(client_, datagram(6, {}, to_server.get(), *server_.qp, 0x8000'0000));
  expect(client_, 6);
  expect(server_, 8);
  expect_quiet();
}

TEST_P(FabricSuite, ADatagramIsCheckedBeforeItLeaves) {
  RDMA_RPC_NEEDS(ud);
  enum class Wrong { too_long, no_handle, write, read, invalidate };
  for (const Wrong wrong :
       {Wrong::too_long, Wrong::no_handle, Wrong::write, Wrong::read, Wrong::invalidate}) {
    SCOPED_TRACE(static_cast<int>(wrong));
    UD_PAIR();
    const std::uint64_t bytes = caps().max_datagram_bytes + 1;
    Memory& out = memory(client_, bytes, kTarget);
    const Sge all = out.sge(0, bytes), some = out.sge(0, 8);
    SendWr wr = datagram(1, {wrong == Wrong::too_long ? &all : &some, 1}, to_server.get(), *server_.qp);
    if (wrong == Wrong::no_handle) wr.ud.ah = nullptr;
    if (wrong == Wrong::write) wr.opcode = Opcode::rdma_write;
    if (wrong == Wrong::read) wr.opcode = Opcode::rdma_read;
    if (wrong == Wrong::invalidate) wr.opcode = Opcode::send_with_inv;
    post(client_, wr);
    EXPECT_EQ(expect_error(client_, 1).status,
              wrong == Wrong::too_long ? WcStatus::loc_len_err : WcStatus::loc_qp_op_err);
    settle();
    EXPECT_TRUE(server_.completions.empty());
  }
}

TEST_P(FabricSuite, OneUdQueuePairHearsManyAndItself) {
  UD_PAIR();
  Memory& in = memory(server_, 8 * 64, kLocal);
  std::vector<std::unique_ptr<QueuePair>> senders;
  for (std::uint64_t i = 0; i < 7; ++i) {
    senders.push_back(client_.device->create_qp(*client_.cq, {.type = QpType::ud, .qkey = kQkey}, &error));
    ASSERT_NE(senders.back(), nullptr) << error;
    ASSERT_EQ(senders.back()->connect({}), "");
  }
  for (std::uint64_t i = 0; i < 8; ++i) post_recv(server_, i, in.sge(64 * i, 64));
  for (std::uint64_t i = 0; i < 7; ++i) {
    post(*senders[i], datagram(i, {}, to_server.get(), *server_.qp));
    expect(client_, i);
    EXPECT_EQ(expect(server_, i).src_qp, senders[i]->qp_num());
  }
  const auto own = server_.device->create_ah({.gid = server_.device->gid()}, &error);
  ASSERT_NE(own, nullptr) << error;
  post(server_, datagram(20, {}, own.get(), *server_.qp));
  std::uint64_t received = 0;
  for (int i = 0; i < 2; ++i) {
    const Wc wc = next(server_);
    EXPECT_EQ(wc.status, WcStatus::success);
    if (wc.opcode != Opcode::recv) continue;
    ++received;
    EXPECT_EQ(wc.src_qp, server_.qp->qp_num());
  }
  EXPECT_EQ(received, 1u);
  expect_quiet();
}

TEST_P(FabricSuite, AUdQueuePairHasNoPeer) {
  RDMA_RPC_NEEDS(ud);
  recreate({.type = QpType::ud, .qkey = kQkey, .send_wr_max = 16, .recv_wr_max = 16});
  EXPECT_EQ(client_.qp->state(), QpState::init);
  EXPECT_NE(client_.qp->connect(address_of(*server_.qp)), "");
  EXPECT_EQ(client_.qp->state(), QpState::err);
  ASSERT_EQ(server_.qp->connect({}), "");
  EXPECT_EQ(server_.qp->state(), QpState::rts);
}

TEST_P(FabricSuite, AQkeyHasATopBitOfZero) {
  RDMA_RPC_NEEDS(ud);
  std::string error;
  EXPECT_EQ(client_.device->create_qp(*client_.cq, {.type = QpType::ud, .qkey = 0x8000'0001}, &error),
            nullptr);
  EXPECT_NE(error.find("Q_Key"), std::string::npos) << error;
}

}  // namespace rdma_rpc::fabric::test

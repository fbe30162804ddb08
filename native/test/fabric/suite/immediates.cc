// Tests SEND with immediate, and solicited messages: which messages wake a sleeping receiver.
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

TEST_P(FabricSuite, ASendWithImmediateBringsBytesAndTheWord) {
  RDMA_RPC_NEEDS(send_immediate);
  connect();
  Memory& out = memory(client_, 8192, kLocal);
  Memory& in = memory(server_, 8192, kLocal);
  std::uint32_t seed = 0;
  for (const std::size_t bytes : {0u, 1u, 52u, 56u, 57u, 170u, 216u, 217u, 4096u, 8192u}) {
    SCOPED_TRACE(bytes);
    out.fill(0, bytes, ++seed);
    in.paint(0xee);
    post_recv(server_, seed, in.sge(0, 8192));
    const Sge sge = out.sge(0, bytes);
    SendWr wr = request(Opcode::send_with_imm, seed, {&sge, 1});
    wr.imm = 0x01020304 + seed;
    post(client_, wr);
    const Wc received = expect(server_, seed);
    EXPECT_EQ(received.opcode, Opcode::recv);
    EXPECT_TRUE(received.has_imm);
    EXPECT_EQ(received.imm, 0x01020304 + seed);
    EXPECT_EQ(received.bytes, bytes);
    EXPECT_EQ(received.invalidated_rkey, 0u);
    EXPECT_TRUE(in.holds(0, bytes, seed) && in.all(bytes, 8192 - bytes, 0xee));
    EXPECT_EQ(expect(client_, seed).opcode, Opcode::send_with_imm);
  }
  // The next message has no immediate.
  post_recv(server_, 99, in.sge(0, 8192));
  post(client_, request(Opcode::send, 99, {}));
  EXPECT_FALSE(expect(server_, 99).has_imm);
  expect(client_, 99);
  expect_quiet();
}

TEST_P(FabricSuite, ASendWithImmediateNeedsAReceiveThatHoldsIt) {
  RDMA_RPC_NEEDS(send_immediate);
  connect();
  Memory& out = memory(client_, 256, kLocal);
  Memory& in = memory(server_, 256, kLocal);
  in.paint(0xee);
  post_recv(server_, 1, in.sge(0, 8));
  const Sge sge = out.sge(0, 9);
  post(client_, request(Opcode::send_with_imm, 2, {&sge, 1}));
  EXPECT_TRUE(refused_with(expect_error(client_, 2), WcStatus::rem_inv_req_err));
  expect_error(server_, 1);
  EXPECT_TRUE(in.untouched(0xee));
}

TEST_P(FabricSuite, OnlyASolicitedMessageWakesWhoWaitsForOne) {
  RDMA_RPC_NEEDS(solicited);
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kAllRights);
  const Sge sge = out.sge(0, 8);
  struct Row {
    Opcode opcode;
    bool needed;
  };
  for (const Row& row : {Row{Opcode::send, true},
                         {Opcode::send_with_imm, caps().send_immediate},
                         {Opcode::rdma_write_with_imm, caps().immediate}}) {
    if (!row.needed) continue;
    for (std::uint64_t i = 1; i <= 2; ++i) post_recv(server_, i, in.sge(0, 64));
    settle();
    server_.cq->acknowledge();
    ASSERT_TRUE(server_.cq->arm_solicited());
    SendWr wr = request(row.opcode, 1, {&sge, 1}, in.addr(), in.rkey());
    post(client_, wr);
    expect(client_, 1);
    settle_without_polling();
    EXPECT_FALSE(is_readable(server_)) << "nobody has solicited it";
    wr.wr_id = 2;
    wr.solicited = true;
    post(client_, wr);
    EXPECT_TRUE(becomes_readable(server_));
    server_.cq->acknowledge();
    EXPECT_FALSE(is_readable(server_));
    expect(server_, 1);
    expect(server_, 2);
    expect(client_, 2);
  }
  expect_quiet();
}

TEST_P(FabricSuite, AMessageThatWaitsKeepsAwakeWhoAsksForSolicitedOnes) {
  RDMA_RPC_NEEDS(solicited);
  connect();
  post_recv(server_, 1, {});
  post(client_, request(Opcode::send, 2, {}));
  bool sleeps = true;
  for (int i = 0; i < 1000 && sleeps; ++i) {
    settle_without_polling();
    server_.cq->acknowledge();
    sleeps = server_.cq->arm_solicited();
  }
  EXPECT_FALSE(sleeps) << "poll first";
  expect(server_, 1);
  expect(client_, 2);
}

TEST_P(FabricSuite, AFailureWakesWhoWaitsForASolicitedMessage) {
  RDMA_RPC_NEEDS(solicited);
  connect();
  post_recv(server_, 1, {});
  settle();
  server_.cq->acknowledge();
  ASSERT_TRUE(server_.cq->arm_solicited());
  server_.qp->to_error();
  EXPECT_TRUE(becomes_readable(server_));
  server_.cq->acknowledge();
  EXPECT_EQ(expect_error(server_, 1).status, WcStatus::wr_flush_err);
}

/// A sleep for all messages follows a sleep for solicited messages, and vice versa.
TEST_P(FabricSuite, TheLastArmDecidesWhatWakes) {
  connect();
  Memory& in = memory(server_, 64, kLocal);
  for (int round = 0; round < 3; ++round) {
    post_recv(server_, 1, in.sge(0, 64));
    settle();
    server_.cq->acknowledge();
    if (server_.cq->arm_solicited()) {
      server_.cq->acknowledge();
      ASSERT_TRUE(server_.cq->arm());
    }
    post(client_, request(Opcode::send, 2, {}));
    EXPECT_TRUE(becomes_readable(server_));
    server_.cq->acknowledge();
    expect(server_, 1);
    expect(client_, 2);
  }
}

}  // namespace rdma_rpc::fabric::test

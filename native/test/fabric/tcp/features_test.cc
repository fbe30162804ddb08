// Tests that a peer of an earlier release never gets a frame that it does not know. A peer of this release is
// asked once, and then gets the frames that it knows.
#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

using tcp::Header;
using tcp::Op;

SendWr with_immediate(std::uint64_t wr_id) {
  SendWr wr = request(Opcode::send_with_imm, wr_id, {});
  wr.imm = 7;
  return wr;
}

SendWr adding(std::uint64_t wr_id, const Sge& sink) {
  SendWr wr = request(Opcode::atomic_fetch_and_add, wr_id, {&sink, 1}, 4096, 1);
  wr.atomic = {1, 0};
  return wr;
}

bool is_question(const Header& header) {
  return header.op == Op::write && header.flags == tcp::flag_ack && header.total == 0 &&
         header.key == tcp::kFeaturesKey && header.addr == tcp::kFeaturesAddr;
}

TEST(TcpFeatures, ASessionAsksNothing) {
  TcpEnd end;
  RawPeer peer(end);
  peer.connect();
  end.post(request(Opcode::send, 1, {}));
  Header header;
  ASSERT_TRUE(peer.take_frame(&header));
  EXPECT_EQ(header.op, Op::send);
  EXPECT_EQ(header.number, 0u);
  end.poll();
  EXPECT_FALSE(peer.readable());
}

TEST(TcpFeatures, APeerThatDoesNotAnswerTheQuestionIsSentNothingNew) {
  for (const bool atomic : {false, true}) {
    SCOPED_TRACE(atomic);
    TcpEnd end;
    RawPeer peer(end);
    peer.connect();
    end.post(request(Opcode::send, 1, {}));
    const Sge sink = end.sge(0, 8);
    end.post(atomic ? adding(2, sink) : with_immediate(2));
    Header header;
    ASSERT_TRUE(peer.take_frame(&header));
    EXPECT_EQ(header.op, Op::send);
    ASSERT_TRUE(peer.take_frame(&header));
    EXPECT_TRUE(is_question(header));
    EXPECT_EQ(header.number, 1u);
    end.poll();
    EXPECT_FALSE(peer.readable()) << "it waits for the answer";
    peer.send({.op = Op::ack, .number = 2});
    EXPECT_EQ(end.outcome(1), WcStatus::success);
    EXPECT_EQ(end.outcome(2), WcStatus::loc_qp_op_err);
    EXPECT_EQ(end.qp->state(), QpState::err);
    ASSERT_TRUE(peer.take_frame(&header));
    EXPECT_EQ(header.op, Op::gone) << "and nothing else";
  }
}

TEST(TcpFeatures, APeerIsAskedOnce) {
  TcpEnd end;
  RawPeer peer(end);
  peer.connect();
  end.post(with_immediate(1));
  end.post(with_immediate(2));
  Header header;
  ASSERT_TRUE(peer.take_frame(&header));
  ASSERT_TRUE(is_question(header));
  peer.send({.op = Op::features, .extra = tcp::feature_send_immediate});
  peer.send({.op = Op::ack, .number = 1});
  for (const std::uint32_t number : {1u, 2u}) {
    ASSERT_TRUE(peer.take_frame(&header));
    EXPECT_EQ(header.op, Op::send);
    EXPECT_EQ(header.number, number);
    EXPECT_EQ(header.flags & tcp::flag_immediate, tcp::flag_immediate);
    EXPECT_EQ(header.extra, 7u);
  }
  // The answer does not include atomics.
  const Sge sink = end.sge(0, 8);
  end.post(adding(3, sink));
  peer.send({.op = Op::ack, .number = 3});
  EXPECT_EQ(end.outcome(2), WcStatus::success);
  EXPECT_EQ(end.outcome(3), WcStatus::loc_qp_op_err);
}

TEST(TcpFeatures, TheAnswerComesBeforeTheAck) {
  TcpEnd end;
  RawPeer peer(end);
  peer.connect();
  peer.send({.op = Op::write,
             .flags = tcp::flag_ack,
             .number = 0,
             .key = tcp::kFeaturesKey,
             .addr = tcp::kFeaturesAddr});
  Header header;
  ASSERT_TRUE(peer.take_frame(&header));
  EXPECT_EQ(header.op, Op::features);
  EXPECT_EQ(header.extra, tcp::kFeatureBits);
  ASSERT_TRUE(peer.take_frame(&header));
  EXPECT_EQ(header.op, Op::ack);
  EXPECT_EQ(header.number, 1u);
}

TEST(TcpFeatures, AnotherWriteOfNoBytesIsNoQuestion) {
  TcpEnd end;
  RawPeer peer(end);
  peer.connect();
  peer.send({.op = Op::write, .flags = tcp::flag_ack, .key = tcp::kFeaturesKey});
  Header header;
  ASSERT_TRUE(peer.take_frame(&header));
  EXPECT_EQ(header.op, Op::ack);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

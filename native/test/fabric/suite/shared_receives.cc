// Tests shared receive queues. The tests check which receive a message uses, to which queue pair a receive
// belonged, and which receives remain after a queue pair ends.
#include <map>
#include <set>

#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

constexpr std::size_t kSlot = 256;
constexpr std::uint32_t kTagA = 0xa1, kTagB = 0xb2;

RecvWr slot_of(const Memory& in, std::uint32_t slot) { return {slot, in.sge(slot * kSlot, kSlot)}; }

void post_slots(ReceiveQueue& receives, const Memory& in, std::uint32_t count) {
  std::vector<RecvWr> wrs;
  for (std::uint32_t slot = 0; slot < count; ++slot) wrs.push_back(slot_of(in, slot));
  ASSERT_EQ(receives.post(wrs), count);
}

TEST_P(FabricSuite, SharedReceivesAreTakenInTheOrderPosted) {
  RDMA_RPC_NEEDS(max_srq_wr);
  constexpr std::uint32_t kCount = 8;
  ReceiveQueue& receives = share_receives(kCount);
  EXPECT_GE(receives.capacity(), kCount);
  const Pair a = another_pair(kTagA), b = another_pair(kTagB);
  Memory& in = memory(server_, kCount * kSlot, kLocal);
  Memory& out = memory(client_, kSlot, kLocal);
  // The loop repeats this, so that receives are reused and each is posted again while others are in use.
  std::uint32_t next_slot = 0;
  post_slots(receives, in, kCount);
  for (std::uint32_t i = 0; i < 3 * kCount; ++i) {
    SCOPED_TRACE(i);
    const Pair& from = i % 3 == 0 ? a : b;
    out.fill(0, 1 + i, i);
    const Sge sge = out.sge(0, 1 + i);
    post(*from.client, request(Opcode::send, i, {&sge, 1}));
    const Wc wc = expect(server_, next_slot);
    EXPECT_EQ(wc.opcode, Opcode::recv);
    EXPECT_EQ(wc.bytes, 1 + i);
    EXPECT_EQ(wc.qp_num, from.server->qp_num());
    EXPECT_EQ(wc.tag, i % 3 == 0 ? kTagA : kTagB);
    EXPECT_TRUE(in.holds(next_slot * kSlot, 1 + i, i));
    const RecvWr again = slot_of(in, next_slot);
    EXPECT_EQ(receives.post({&again, 1}), 1u);
    next_slot = (next_slot + 1) % kCount;
    expect(client_, i);
  }
  expect_quiet();
}

TEST_P(FabricSuite, SharedReceivesFillUpAndHaveRoomAfterAPoll) {
  RDMA_RPC_NEEDS(max_srq_wr);
  ReceiveQueue& receives = share_receives(16);
  const Pair pair = another_pair();
  const std::uint32_t capacity = receives.capacity();
  Memory& in = memory(server_, (capacity + 1) * kSlot, kLocal);
  post_slots(receives, in, capacity);
  const RecvWr more = slot_of(in, capacity);
  EXPECT_EQ(receives.post({&more, 1}), 0u);
  post(*pair.client, request(Opcode::send, 1, {}));
  expect(server_, 0);
  EXPECT_EQ(receives.post({&more, 1}), 1u);
  EXPECT_EQ(receives.post({&more, 1}), 0u);
  expect(client_, 1);
  // The queue pair has no receives of its own.
  EXPECT_EQ(pair.server->post_recv({&more, 1}), 0u);
}

TEST_P(FabricSuite, TheEndOfAQueuePairWithNothingPostedIsReported) {
  RDMA_RPC_NEEDS(max_srq_wr);
  share_receives(4);
  const Pair a = another_pair(kTagA), b = another_pair(kTagB);
  b.server->to_error();
  const Wc wc = next(server_);
  EXPECT_EQ(wc.wr_id, kNoReceive);
  EXPECT_EQ(wc.status, WcStatus::wr_flush_err);
  EXPECT_EQ(wc.tag, kTagB);
  EXPECT_EQ(wc.qp_num, b.server->qp_num());
  post(*b.server, request(Opcode::send, 1, {}));
  expect(server_, 1, WcStatus::wr_flush_err);
  EXPECT_EQ(a.server->state(), QpState::rts);
  settle();
  EXPECT_TRUE(server_.completions.empty()) << "told twice";
  client_.completions.clear();
}

TEST_P(FabricSuite, ASendThatFindsNoSharedReceiveEndsItsOwnQueuePairOnly) {
  RDMA_RPC_NEEDS(max_srq_wr);
  RDMA_RPC_NEEDS(names_refusals);
  ReceiveQueue& receives = share_receives(4);
  const Pair a = another_pair(kTagA), b = another_pair(kTagB);
  Memory& in = memory(server_, kSlot, kLocal);
  post(*a.client, request(Opcode::send, 1, {}));
  expect(client_, 1, WcStatus::rnr_retry_exc_err);
  EXPECT_EQ(a.client->state(), QpState::err);
  post_slots(receives, in, 1);
  post(*b.client, request(Opcode::send, 2, {}));
  const Wc wc = next(server_);
  // The end of the other queue pair may be reported first.
  EXPECT_EQ((wc.wr_id == kNoReceive ? expect(server_, 0) : wc).tag, kTagB);
  expect(client_, 2);
}

/// Every receive that this queue pair has taken comes back. The other queue pairs continue with the remaining
/// receives.
TEST_P(FabricSuite, AQueuePairThatEndsFlushesNoSharedReceiveAndLosesNone) {
  RDMA_RPC_NEEDS(max_srq_wr);
  constexpr std::uint32_t kCount = 8;
  ReceiveQueue& receives = share_receives(kCount);
  Memory& in = memory(server_, kCount * kSlot, kLocal);
  post_slots(receives, in, kCount);
  const Pair b = another_pair(kTagB);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const Pair a = another_pair(kTagA);
    // Some messages have arrived and are not polled, and some are still in transit.
    for (std::uint64_t i = 0; i < 3; ++i) {
      SendWr wr = request(Opcode::send, i, {});
      wr.signaled = false;
      post(*a.client, wr);
      if (i == 1) settle_without_polling();
    }
    a.server->to_error();
    post(*a.server, request(Opcode::send, 77, {}));
    for (Wc wc = next(server_); wc.wr_id != 77; wc = next(server_)) {
      EXPECT_EQ(wc.tag, kTagA);
      if (wc.wr_id == kNoReceive) continue;
      ASSERT_LT(wc.wr_id, kCount);
      const RecvWr again = slot_of(in, static_cast<std::uint32_t>(wc.wr_id));
      ASSERT_EQ(receives.post({&again, 1}), 1u);
    }
    destroy(*a.server);
    destroy(*a.client);
    client_.completions.clear();
  }
  settle();
  EXPECT_TRUE(server_.completions.empty());
  client_.completions.clear();
  // All receives are still available.
  std::set<std::uint64_t> slots;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    post(*b.client, request(Opcode::send, 100 + i, {}));
    const Wc wc = next(server_);
    EXPECT_EQ(wc.status, WcStatus::success);
    EXPECT_EQ(wc.tag, kTagB);
    EXPECT_TRUE(slots.insert(wc.wr_id).second);
    expect(client_, 100 + i);
  }
  EXPECT_EQ(slots.size(), kCount);
}

TEST_P(FabricSuite, AMessageTooLongForASharedReceiveEndsItsOwnQueuePairOnly) {
  RDMA_RPC_NEEDS(max_srq_wr);
  ReceiveQueue& receives = share_receives(4);
  const Pair a = another_pair(kTagA), b = another_pair(kTagB);
  Memory& in = memory(server_, 2 * kSlot, kLocal);
  Memory& out = memory(client_, 2 * kSlot, kLocal);
  post_slots(receives, in, 2);
  const Sge sge = out.sge(0, kSlot + 1);
  post(*a.client, request(Opcode::send, 1, {&sge, 1}));
  const Wc first = next(server_);
  const Wc wc = first.wr_id == kNoReceive ? expect_error(server_, 0) : first;
  EXPECT_EQ(wc.wr_id, 0u);
  EXPECT_NE(wc.status, WcStatus::success);
  EXPECT_EQ(wc.tag, kTagA);
  expect_error(client_, 1);
  post(*b.client, request(Opcode::send, 2, {}));
  const Wc received = next(server_);
  EXPECT_EQ((received.wr_id == kNoReceive ? expect(server_, 1) : received).tag, kTagB);
  expect(client_, 2);
}

TEST_P(FabricSuite, SharedReceivesAreRefusedWithTheReason) {
  std::string error;
  if (caps().max_srq_wr == 0) {
    EXPECT_EQ(server_.device->create_receive_queue(*server_.cq, 16, &error), nullptr);
    EXPECT_NE(error.find("max_srq_wr"), std::string::npos) << error;
    return;
  }
  for (const std::uint32_t receives : {0u, caps().max_srq_wr + 1}) {
    EXPECT_EQ(server_.device->create_receive_queue(*server_.cq, receives, &error), nullptr);
    EXPECT_NE(error.find("max_srq_wr"), std::string::npos) << error;
  }
  share_receives(16);
  EXPECT_EQ(server_.device->create_receive_queue(*server_.cq, 16, &error), nullptr);
  EXPECT_NE(error.find("already"), std::string::npos) << error;
}

}  // namespace rdma_rpc::fabric::test

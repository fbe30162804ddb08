// Tests completion queues: signaling, full queues, batches, waiting for the descriptor.
#include <array>
#include <map>
#include <set>

#include "fabric/suite/allocation_count.h"
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

TEST_P(FabricSuite, OnlySignaledRequestsCompleteAndTheyFreeThoseBefore) {
  recreate({.send_wr_max = 16, .recv_wr_max = 16});
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kAllRights);
  const Sge sge = out.sge(0, 8);
  // The requests go around the ring many times, so the slots of unsignaled requests must become free again.
  for (std::uint64_t round = 0; round < 50; ++round) {
    for (std::uint64_t i = 0; i < 15; ++i) {
      SendWr wr = request(Opcode::rdma_write, round * 100 + i, {&sge, 1}, in.addr(), in.rkey());
      wr.signaled = i == 14;
      post(client_, wr);
    }
    expect(client_, round * 100 + 14);
  }
  expect_quiet();
}

TEST_P(FabricSuite, AFailureIsReportedAfterUnsignaledRequests) {
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kAllRights);
  const Sge sge = out.sge(0, 8), outside{out.addr(), 8, out.region->lkey() ^ 1u};
  SendWr silent = request(Opcode::rdma_write, 1, {&sge, 1}, in.addr(), in.rkey());
  silent.signaled = false;
  post(client_, silent);
  post(client_, request(Opcode::rdma_write, 2, {&outside, 1}, in.addr(), in.rkey()));
  Wc first = next(client_);
  // Since Linux 6.4, soft-RoCE immediately flushes everything that the peer has not acknowledged, including
  // earlier requests.
  if (!caps().exact_windows && first.wr_id == 1) {
    EXPECT_EQ(first.status, WcStatus::wr_flush_err);
    first = next(client_);
  }
  EXPECT_EQ(first.wr_id, 2u);
  EXPECT_TRUE(refused_with(first, WcStatus::loc_prot_err)) << to_string(first.status);
}

TEST_P(FabricSuite, AFullSendQueueTakesTheRestLater) {
  recreate({.send_wr_max = 16, .recv_wr_max = 16});
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kAllRights);
  const Sge sge = out.sge(0, 8);
  constexpr std::size_t kCount = 1000;
  std::vector<SendWr> batch;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    batch.push_back(request(Opcode::rdma_write, i, {&sge, 1}, in.addr(), in.rkey()));
  }
  std::size_t posted = client_.qp->post_send(batch);
  EXPECT_GE(posted, 16u);
  EXPECT_LE(posted, 64u) << "far more than the queue was made for";
  EXPECT_EQ(client_.qp->post_send(std::span(batch).subspan(posted)), 0u) << "nothing was polled";
  for (std::uint64_t done = 0; done < kCount; ++done) {
    expect(client_, done);
    posted += client_.qp->post_send(std::span(batch).subspan(posted));
  }
  EXPECT_EQ(posted, kCount);
  expect_quiet();
}

TEST_P(FabricSuite, AFullReceiveQueueTakesNoMore) {
  recreate({.send_wr_max = 16, .recv_wr_max = 16});
  connect();
  Memory& in = memory(server_, 64, kLocal);
  std::vector<RecvWr> batch(100);
  for (std::uint64_t i = 0; i < batch.size(); ++i) batch[i] = {i, in.sge(0, 64)};
  const std::size_t posted = server_.qp->post_recv(batch);
  EXPECT_GE(posted, 16u);
  EXPECT_LE(posted, 64u);
  post(client_, request(Opcode::send, 500, {}));
  expect(server_, 0);
  EXPECT_EQ(server_.qp->post_recv({&batch[posted], 1}), 1u);
  expect(client_, 500);
}

TEST_P(FabricSuite, MoreQueuePairsThanItsEntriesDoNotOverrunAQueue) {
  constexpr std::uint32_t kPairs = 24, kReceives = 32;
  const auto cq = client_.device->create_cq(64);
  ASSERT_NE(cq, nullptr);
  // The second round checks that the room of destroyed queue pairs is free again.
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<QueuePair>> all;
    std::map<std::uint32_t, std::uint64_t> next;
    for (std::uint32_t i = 0; i < kPairs; ++i) {
      std::string error;
      all.push_back(client_.device->create_qp(*cq, {.send_wr_max = 32, .recv_wr_max = kReceives}, &error));
      ASSERT_NE(all.back(), nullptr) << error;
      next[all.back()->qp_num()] = 0;
      for (std::uint64_t wr_id = 0; wr_id < kReceives; ++wr_id) {
        const RecvWr wr{wr_id, {}};
        ASSERT_EQ(all.back()->post_recv({&wr, 1}), 1u);
      }
    }
    for (const auto& qp : all) qp->to_error();
    std::size_t flushed = 0;
    for (int idle = 0; flushed < kPairs * kReceives && idle < 10'000;) {
      Wc wcs[16];
      const std::size_t count = cq->poll(wcs);
      for (const Wc& wc : std::span(wcs).first(count)) {
        EXPECT_EQ(wc.status, WcStatus::wr_flush_err);
        EXPECT_EQ(wc.wr_id, next[wc.qp_num]++) << "out of order";
      }
      flushed += count;
      idle = count > 0 ? 0 : idle + 1;
      settle_without_polling();
    }
    ASSERT_EQ(flushed, kPairs * kReceives);
    std::array<Wc, 1> more;
    EXPECT_EQ(cq->poll(more), 0u);
  }
}

TEST_P(FabricSuite, ACompletionPolledIsGone) {
  connect();
  for (std::uint64_t i = 0; i < 5; ++i) post_recv(server_, i, {});
  for (std::uint64_t i = 0; i < 5; ++i) post(client_, request(Opcode::send, i, {}));
  for (std::uint64_t i = 0; i < 5; ++i) {
    expect(server_, i);
    expect(client_, i);
  }
  EXPECT_EQ(client_.cq->poll({}), 0u);
  expect_quiet();
}

TEST_P(FabricSuite, QueuePairsShareACompletionQueueAndAreDistinguished) {
  connect();
  const Pair other = another_pair();
  for (std::uint64_t i = 0; i < 4; ++i) {
    const RecvWr wr{i, {}};
    ASSERT_EQ((i % 2 == 0 ? server_.qp.get() : other.server)->post_recv({&wr, 1}), 1u);
    post(i % 2 == 0 ? *client_.qp : *other.client, request(Opcode::send, 10 + i, {}));
  }
  std::multiset<std::uint32_t> seen;
  for (int i = 0; i < 4; ++i) seen.insert(next(server_).qp_num);
  EXPECT_EQ(seen.count(server_.qp->qp_num()), 2u);
  EXPECT_EQ(seen.count(other.server->qp_num()), 2u);
}

TEST_P(FabricSuite, AnErrorOnOneQueuePairLeavesTheOthersAlone) {
  connect();
  const Pair other = another_pair();
  client_.qp->to_error();
  const RecvWr wr{1, {}};
  ASSERT_EQ(other.server->post_recv({&wr, 1}), 1u);
  post(*other.client, request(Opcode::send, 2, {}));
  expect(server_, 1);
  expect(client_, 2);
}

TEST_P(FabricSuite, AnArmedQueueWakesItsDescriptor) {
  connect();
  settle();
  for (std::uint64_t round = 0; round < 100; ++round) {
    post_recv(server_, round, {});
    ASSERT_TRUE(server_.cq->arm()) << "nothing has happened yet";
    EXPECT_FALSE(is_readable(server_));
    post(client_, request(Opcode::send, round, {}));
    ASSERT_TRUE(becomes_readable(server_)) << "lost wake-up in round " << round;
    server_.cq->acknowledge();
    EXPECT_FALSE(is_readable(server_));
    expect(server_, round);
    expect(client_, round);
  }
}

TEST_P(FabricSuite, ArmingReportsPendingCompletions) {
  connect();
  settle();
  post_recv(server_, 1, {});
  ASSERT_TRUE(server_.cq->arm());
  post(client_, request(Opcode::send, 2, {}));
  ASSERT_TRUE(becomes_readable(server_));
  server_.cq->acknowledge();
  EXPECT_FALSE(server_.cq->arm()) << "a completion is waiting to be polled";
  expect(server_, 1);
  expect(client_, 2);
}

TEST_P(FabricSuite, TheSenderIsWokenByItsOwnCompletionsToo) {
  connect();
  settle();
  post_recv(server_, 1, {});
  ASSERT_TRUE(client_.cq->arm());
  post(client_, request(Opcode::send, 2, {}));
  ASSERT_TRUE(becomes_readable(client_));
  client_.cq->acknowledge();
  expect(client_, 2);
}

TEST_P(FabricSuite, AFlushWakesASleeper) {
  connect();
  settle();
  post_recv(server_, 1, {});
  ASSERT_TRUE(server_.cq->arm());
  server_.qp->to_error();
  ASSERT_TRUE(becomes_readable(server_));
  server_.cq->acknowledge();
  expect(server_, 1, WcStatus::wr_flush_err);
}

TEST_P(FabricSuite, PostingAndPollingAllocateNothing) {
  connect();
  Memory& out = memory(client_, 4096, kAllRights);
  Memory& in = memory(server_, 4096, kAllRights);
  const Sge from = out.sge(0, 64), to = in.sge(0, 4096);
  const auto round = [&] {
    const RecvWr receive{1, to};
    std::uint64_t allocations = count_allocations([&] { server_.qp->post_recv({&receive, 1}); });
    SendWr batch[3] = {request(Opcode::rdma_write, 2, {&from, 1}, in.addr(), in.rkey()),
                       request(Opcode::rdma_read, 3, {&from, 1}, in.addr(), in.rkey()),
                       request(Opcode::send, 4, {&from, 1})};
    allocations += count_allocations([&] { client_.qp->post_send(batch); });
    std::size_t done = 0;
    for (Wc wcs[8]; done < 4; settle_without_polling()) {
      for (Side* side : {&client_, &server_}) {
        allocations += count_allocations([&] { done += side->cq->poll(wcs); });
      }
    }
    return allocations;
  };
  // The first rounds may allocate memory that grows with the work in flight.
  for (int i = 0; i < 100; ++i) round();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(round(), 0u) << "in round " << i;
}

}  // namespace rdma_rpc::fabric::test

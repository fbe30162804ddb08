// Tests completion queues that break, and the device's own error codes.
#include <algorithm>

#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

TEST(CompletionQueueThatCannotBePolled, EndsItsQueuePairsAndTheirRequests) {
  Machine machine;
  Nic& nic = machine.add(capable());
  const auto device = open(nic);
  Connected pair(*device, *device);
  ASSERT_EQ(pair.error, "");
  const auto memory = device->alloc_memory(4096, "test");
  std::string error;
  const auto region = device->reg_mr(memory->data(), 4096, fabric::access_local_write, &error);
  const fabric::RecvWr receive{7, {region->addr(), 64, region->lkey()}};
  ASSERT_EQ(pair.client->post_recv({&receive, 1}), 1u);
  nic.poll_error = -EINVAL;
  fabric::Wc wc;
  std::size_t got = 0;
  for (int i = 0; i < 100 && got == 0; ++i) got = pair.client_cq->poll({&wc, 1});
  ASSERT_EQ(got, 1u);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.status, fabric::WcStatus::wr_flush_err);
  EXPECT_EQ(pair.client->state(), fabric::QpState::err);
  EXPECT_EQ(pair.client->error(), "nic0 cannot read its completions any more (ibv_poll_cq returned -22)");
  nic.poll_error = 0;
}

TEST(CompletionQueueThatCannotBePolled, IsNoticedBeforeASleep) {
  Machine machine;
  Nic& nic = machine.add(capable());
  const auto device = open(nic);
  Connected pair(*device, *device);
  ASSERT_EQ(pair.error, "");
  nic.poll_error = -1;
  pair.client_cq->arm();
  EXPECT_EQ(pair.client->state(), fabric::QpState::err);
  nic.poll_error = 0;
}

/// All queue pairs complete as many requests as they may have outstanding, and no thread polls in the
/// meantime.
TEST(CompletionQueueOfManyQueuePairs, NeverOverruns) {
  Machine machine;
  Profile profile = capable();
  profile.rounds_queues = false;
  const auto device = open(machine.add(profile));
  constexpr std::uint32_t kSends = 8;
  constexpr std::size_t kPairs = 12;
  const auto cq = device->create_cq(16);
  std::vector<std::unique_ptr<fabric::QueuePair>> clients, servers;
  std::string error;
  for (std::size_t i = 0; i < kPairs; ++i) {
    fabric::QpOptions options{.send_wr_max = kSends, .recv_wr_max = kSends};
    clients.push_back(device->create_qp(*cq, options, &error));
    options.active = false;
    servers.push_back(device->create_qp(*cq, options, &error));
    ASSERT_NE(servers.back(), nullptr) << error;
    ASSERT_EQ(servers.back()->connect(clients.back()->local_address()), "");
    ASSERT_EQ(clients.back()->connect(servers.back()->local_address()), "");
    fabric::Wc none;
    while (clients.back()->state() != fabric::QpState::rts) cq->poll({&none, 1});
  }
  const std::vector<fabric::RecvWr> receives(kSends);
  std::vector<fabric::SendWr> sends(kSends);
  for (fabric::SendWr& each : sends) each.signaled = true;
  for (std::size_t i = 0; i < kPairs; ++i) {
    EXPECT_EQ(servers[i]->post_recv(receives), kSends);
    EXPECT_EQ(clients[i]->post_send(sends), kSends);
  }
  std::size_t good = 0;
  fabric::Wc wcs[16];
  // A server may become ready later than its client, and its messages are then sent again after a while.
  for (int idle = 0; good < kPairs * kSends * 2 && idle < 1'000'000; ++idle) {
    const std::size_t got = cq->poll(wcs);
    for (std::size_t i = 0; i < got; ++i) {
      ASSERT_EQ(wcs[i].status, fabric::WcStatus::success);
      ++good;
    }
  }
  EXPECT_EQ(good, kPairs * kSends * 2);
}

/// Each thread of a process has its own completion queue, on a device that the thread has opened itself.
TEST(CompletionQueuesOfThreads, UseTheInterruptsOfTheDeviceInTurn) {
  Machine machine;
  Nic& nic = machine.add(capable());
  nic.vectors_max = 4;
  for (int thread = 0; thread < 8; ++thread) open(nic)->create_cq(16);
  std::sort(nic.vectors.begin(), nic.vectors.end());
  EXPECT_EQ(nic.vectors, (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(CodeOfTheDevice, ComesWithTheCompletionThatFailed) {
  Machine machine;
  Profile profile = capable();
  profile.vendor_err = 0x81;
  Nic& nic = machine.add(profile);
  const auto device = open(nic);
  Connected pair(*device, *device);
  ASSERT_EQ(pair.error, "");
  fabric::SendWr send;  // the peer has posted no receive for it
  send.wr_id = 3;
  ASSERT_EQ(pair.client->post_send({&send, 1}), 1u);
  fabric::Wc wc;
  ASSERT_EQ(pair.client_cq->poll({&wc, 1}), 1u);
  EXPECT_EQ(wc.status, fabric::WcStatus::rnr_retry_exc_err);
  EXPECT_EQ(wc.vendor_err, 0x81u);
}

}  // namespace
}  // namespace rdma_rpc::nic

// Checks the requests that the simulated device refuses, like a NIC with its limits, beyond the requirements
// of the fabric suite.
#include <poll.h>

#include <set>

#include "fabric/sim/pair.h"

namespace rdma_rpc::fabric::test {
namespace {

TEST(SimDevice, QueuePairsOfAnotherWorldAreRefused) {
  SimPair here, there;
  const auto qp = here.client.device->create_qp(*here.client.cq, {}, nullptr);
  const auto far = there.client.device->create_qp(*there.client.cq, {}, nullptr);
  const std::string reason = qp->connect(far->local_address());
  EXPECT_NE(reason.find("another world"), std::string::npos) << reason;
}

TEST(SimDevice, AQueuePairCannotConnectToItselfOrToAConnectedOne) {
  SimPair pair;
  const auto self = pair.client.device->create_qp(*pair.client.cq, {}, nullptr);
  EXPECT_NE(self->connect(self->local_address()), "");
  const auto late = pair.client.device->create_qp(*pair.client.cq, {}, nullptr);
  EXPECT_NE(late->connect(pair.server.qp->local_address()), "");
  EXPECT_EQ(pair.server.qp->state(), QpState::rts);
}

TEST(SimDevice, QueuePairsOfOneDeviceMayConnect) {
  SimPair pair;
  const auto a = pair.client.device->create_qp(*pair.client.cq, {}, nullptr);
  const auto b = pair.client.device->create_qp(*pair.client.cq, {}, nullptr);
  ASSERT_EQ(a->connect(b->local_address()), "");
  ASSERT_EQ(b->connect(a->local_address()), "");
  const Sge from = pair.client.sge(0), to = pair.client.sge(1024);
  std::memset(pair.client.host->data(), 7, 64);
  const SendWr wr = request(Opcode::rdma_write, 1, {&from, 1}, to.addr, pair.client.region->rkey());
  ASSERT_EQ(a->post_send({&wr, 1}), 1u);
  EXPECT_EQ(SimPair::poll(pair.client).at(0).status, WcStatus::success);
  EXPECT_EQ(pair.client.host->data()[1024], std::byte{7});
}

TEST(SimDevice, KeysOfAnotherDeviceOpenNothing) {
  for (const bool local : {true, false}) {
    SimPair pair;
    const auto third = pair.world.open_device();
    std::byte secret[64] = {};
    const auto region = third->reg_mr(secret, sizeof secret, kAllRights, nullptr);
    const Sge mine = pair.client.sge(), theirs{region->addr(), 64, region->lkey()};
    const SendWr wr = local ? request(Opcode::rdma_write, 1, {&theirs, 1}, pair.server.region->addr(),
                                      pair.server.region->rkey())
                            : request(Opcode::rdma_read, 1, {&mine, 1}, region->addr(), region->rkey());
    pair.client.qp->post_send({&wr, 1});
    const WcStatus wanted = local ? WcStatus::loc_prot_err : WcStatus::rem_access_err;
    EXPECT_EQ(SimPair::poll(pair.client).at(0).status, wanted);
  }
}

TEST(SimDevice, AKeyIsNotUsedAgainForALongTime) {
  SimPair pair;
  std::byte buffer[64];
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 20'000; ++i) {
    const auto region = pair.client.device->reg_mr(buffer, sizeof buffer, kLocal, nullptr);
    ASSERT_TRUE(keys.insert(region->lkey()).second) << "after " << i << " registrations";
  }
}

TEST(SimDevice, AWindowOfAnotherDeviceCannotBeBound) {
  SimPair pair;
  const auto window = pair.server.device->alloc_mw();
  SendWr wr = request(Opcode::bind_mw, 1, {});
  wr.bind = {window.get(), pair.client.region.get(), pair.client.region->addr(), 64, access_remote_read};
  pair.client.qp->post_send({&wr, 1});
  EXPECT_EQ(SimPair::poll(pair.client).at(0).status, WcStatus::mw_bind_err);
}

TEST(SimDevice, AWindowGivesNoAccessOnceItsRegionIsReleased) {
  SimPair pair;
  const auto window = pair.client.device->alloc_mw();
  const std::uint64_t addr = pair.client.region->addr();
  SendWr wr = request(Opcode::bind_mw, 1, {});
  wr.bind = {window.get(), pair.client.region.get(), addr, 64, access_remote_read};
  pair.client.qp->post_send({&wr, 1});
  EXPECT_EQ(SimPair::poll(pair.client).at(0).status, WcStatus::success);
  pair.client.region.reset();
  const Sge sink = pair.server.sge();
  const SendWr read = request(Opcode::rdma_read, 2, {&sink, 1}, addr, window->rkey());
  pair.server.qp->post_send({&read, 1});
  EXPECT_EQ(SimPair::poll(pair.server).at(0).status, WcStatus::rem_access_err);
}

TEST(SimDevice, RegistrationsAreCheckedAndErrorsNameTheLimit) {
  SimOptions options;
  options.registered_bytes_max = 8192;
  SimWorld world(options);
  const auto device = world.open_device();
  const auto memory = device->alloc_memory(65536, "test");
  std::string error;
  EXPECT_EQ(device->reg_mr(memory->data(), 0, kLocal, &error), nullptr);
  EXPECT_EQ(device->reg_mr(memory->data(), SIZE_MAX, kLocal, &error), nullptr);
  EXPECT_EQ(device->reg_mr(memory->data(), 64, access_remote_write, &error), nullptr);
  EXPECT_EQ(device->reg_mr(memory->data(), 64, access_remote_write, nullptr), nullptr);
  EXPECT_EQ(device->reg_mr(memory->data(), 8193, kLocal, &error), nullptr);
  EXPECT_NE(error.find("registered_bytes_max (8192"), std::string::npos) << error;
  auto first = device->reg_mr(memory->data(), 8000, kLocal, &error);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(device->reg_mr(memory->data(), 193, kLocal, &error), nullptr);
  EXPECT_NE(error.find("8000 in use"), std::string::npos) << error;
  first.reset();
  EXPECT_NE(device->reg_mr(memory->data(), 193, kLocal, &error), nullptr);
}

TEST(SimDevice, ADeviceThatExposesOnlyItsOwnMemoryReportsIt) {
  SimOptions options;
  options.capabilities.exposes_any_memory = false;
  SimWorld world(options);
  const auto device = world.open_device();
  const auto memory = device->alloc_memory(4096, "test");
  std::byte elsewhere[64];
  std::string error;
  EXPECT_NE(device->reg_mr(memory->data() + 4032, 64, kAllRights, &error), nullptr);
  EXPECT_EQ(device->reg_mr(memory->data() + 4033, 64, kAllRights, &error), nullptr);
  EXPECT_NE(device->reg_mr(elsewhere, 64, kLocal, &error), nullptr);
  EXPECT_EQ(device->reg_mr(elsewhere, 64, kAllRights, &error), nullptr);
  EXPECT_NE(error.find("alloc_memory"), std::string::npos) << error;
}

TEST(SimDevice, QueuesOutsideTheLimitAreRefused) {
  SimPair pair;
  const std::uint32_t limit = pair.client.device->capabilities().max_qp_wr;
  using Depths = std::pair<std::uint32_t, std::uint32_t>;
  for (const auto& [sends, receives] : {Depths{0, 1}, {1, 0}, {limit + 1, 1}, {1, limit + 1}}) {
    const QpOptions options{.send_wr_max = sends, .recv_wr_max = receives};
    std::string error;
    EXPECT_EQ(pair.client.device->create_qp(*pair.client.cq, options, &error), nullptr);
    EXPECT_NE(error.find("max_qp_wr"), std::string::npos) << error;
  }
}

TEST(SimDevice, ADisarmedQueueMakesNoSystemCallsAndStaysUnreadable) {
  SimPair pair;
  pollfd descriptor{pair.server.cq->fd(), POLLIN, 0};
  pair.receive(pair.server, 1);
  pair.post(pair.client, Opcode::send, 2);
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);
  SimPair::poll(pair.server);
  ASSERT_TRUE(pair.server.cq->arm());
  pair.server.cq->acknowledge();
  pair.receive(pair.server, 1);
  pair.post(pair.client, Opcode::send, 2);
  EXPECT_EQ(poll(&descriptor, 1, 0), 0) << "acknowledge() disarms";
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

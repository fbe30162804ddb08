// Tests READs with several gather entries, of which some devices support only one (max_sge_rd), and events
// that come twice.
#include <poll.h>

#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

class Reads : public testing::TestWithParam<int> {};

/// The NIC would refuse such a request with EINVAL, which ends the queue pair.
TEST_P(Reads, HaveAsManyEntriesAsTheDeviceAllowsThem) {
  const auto most = static_cast<std::uint32_t>(GetParam());
  Machine machine;
  Profile profile = capable();
  profile.attributes.max_sge_rd = GetParam();
  Nic& nic = machine.add(profile);
  const auto device = open(nic);
  EXPECT_EQ(device->capabilities().max_sge_read, most);
  Connected pair(*device, *device, {.send_wr_max = 16, .recv_wr_max = 16, .max_sge = 8});
  ASSERT_EQ(pair.error, "");
  const auto memory = device->alloc_memory(8192, "test");
  std::string error;
  const auto region =
      device->reg_mr(memory->data(), 8192, fabric::access_local_write | fabric::access_remote_read, &error);
  ASSERT_NE(region, nullptr) << error;
  const auto read = [&](std::uint32_t entries) {
    std::vector<fabric::Sge> sges;
    for (std::uint32_t i = 0; i < entries; ++i) sges.push_back({region->addr() + 16 * i, 16, region->lkey()});
    fabric::SendWr wr;
    wr.opcode = fabric::Opcode::rdma_read;
    wr.signaled = true;
    wr.sges = sges;
    wr.remote_addr = region->addr() + 4096;
    wr.rkey = region->rkey();
    EXPECT_EQ(pair.client->post_send({&wr, 1}), 1u);
    fabric::Wc wc;
    EXPECT_EQ(pair.client_cq->poll({&wc, 1}), 1u);
    return wc.status;
  };
  EXPECT_EQ(read(most), fabric::WcStatus::success);
  EXPECT_EQ(nic.carried_out[IBV_WR_RDMA_READ], 1u);
  EXPECT_EQ(read(most + 1), fabric::WcStatus::loc_qp_op_err);
  EXPECT_EQ(nic.carried_out[IBV_WR_RDMA_READ], 1u) << "the device was asked";
}

INSTANTIATE_TEST_SUITE_P(Nic, Reads, testing::Values(1, 2, 7));

/// The descriptor is readable until both events have been read. Otherwise a loop that sleeps on it would not
/// sleep.
TEST(EventsThatComeTwice, WakeOnce) {
  Machine machine;
  Profile profile = capable();
  profile.doubles_events = true;
  Nic& nic = machine.add(profile);
  const auto device = open(nic);
  Connected pair(*device, *device);
  ASSERT_EQ(pair.error, "");
  const auto readable = [&] {
    pollfd fd{pair.client_cq->fd(), POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
  };
  pair.client_cq->acknowledge();
  pair.server_cq->acknowledge();
  ASSERT_TRUE(pair.client_cq->arm());
  EXPECT_FALSE(readable());
  const fabric::RecvWr none{};
  ASSERT_EQ(pair.server->post_recv({&none, 1}), 1u);
  fabric::SendWr send;
  send.signaled = true;
  ASSERT_EQ(pair.client->post_send({&send, 1}), 1u);
  EXPECT_TRUE(readable());
  pair.client_cq->acknowledge();
  EXPECT_FALSE(readable());
  fabric::Wc wc;
  EXPECT_EQ(pair.client_cq->poll({&wc, 1}), 1u);

  nic.report(IBV_EVENT_GID_CHANGE);
  EXPECT_TRUE(readable());
  pair.client_cq->acknowledge();
  EXPECT_FALSE(readable());
}

}  // namespace
}  // namespace rdma_rpc::nic

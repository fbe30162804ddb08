// What sessions ask of a NIC: queues of the size that they use, and no more.
#include <bit>

#include "nic/open.h"
#include "session/suite/device_suite.h"

namespace rdma_rpc::session::test {
namespace {

using nic::Machine;

TEST(SessionOnANic, AsksForQueuesOfTheSizeThatItUses) {
  Machine machine;
  nic::Nic* nics[2] = {&machine.add(nic::named("nic0")), &machine.add(nic::named("nic1"))};
  for (nic::Nic* each : nics) each->profile.inline_max = 512;
  Ends ends(nic::open(*nics[0]), nic::open(*nics[1]));
  const Link link = ends.connect();
  ends.expect_works(link);
  for (const nic::Nic* each : nics) {
    const ibv_qp_cap& cap = each->made.back();
    EXPECT_EQ(std::popcount(cap.max_send_wr), 1) << cap.max_send_wr << ": a NIC rounds up";
    EXPECT_EQ(cap.max_send_sge, 12u);
    EXPECT_EQ(cap.max_inline_data, 220u);
  }
  EXPECT_EQ(ends.finish(), std::vector<std::string>{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

namespace rdma_rpc::nic {
namespace {

TEST(QueuePairOnANic, CountsTheMemoryOfItsQueues) {
  Machine machine;
  const auto device = open(machine.add(capable()));
  const auto cq = device->create_cq(16);
  const std::uint64_t before = device->counters().memory_bytes;
  std::string error;
  const std::uint32_t own = device->capabilities().own_sends;
  auto qp = device->create_qp(
      *cq, {.send_wr_max = 512 - own, .recv_wr_max = 256, .max_sge = 12, .max_inline = 220}, &error);
  ASSERT_NE(qp, nullptr) << error;
  EXPECT_EQ(device->counters().memory_bytes - before, 512u * 256 + 256u * 16);
  qp.reset();
  EXPECT_EQ(device->counters().memory_bytes, before);
}

}  // namespace
}  // namespace rdma_rpc::nic

// The session suite on NICs of our own making: a capable one, and one on which memory windows cannot be bound
// and little is sent inline, so that its large messages go through staging memory. And what sessions ask of a
// NIC.
#include <bit>

#include "nic/open.h"
#include "session/suite/device_suite.h"

namespace rdma_rpc::session::test {
namespace {

using nic::Machine;
using nic::Profile;

/// Sessions end with their sockets, or by rdma_cm; these tests have neither.
Profile capable() {
  Profile profile = nic::capable();
  profile.peers_notice = true;
  return profile;
}

Profile plain() {
  Profile profile = capable();
  profile.binds_windows = false;
  profile.inline_max = 101;  // as irdma
  profile.attributes.max_srq = 0;
  return profile;
}

/// The machine of the current test, whose client's device is opened first.
std::shared_ptr<fabric::Device> open(const Profile& profile, std::size_t end) {
  static std::unique_ptr<Machine> machine;
  if (end == kClientEnd) machine = std::make_unique<Machine>();
  return nic::open(machine->add(nic::named(end == kClientEnd ? "nic0" : "nic1", profile)));
}

INSTANTIATE_TEST_SUITE_P(Nic, DeviceSession, testing::ValuesIn(in_every_mode([](std::size_t end) {
                           return open(capable(), end);
                         })),
                         device_session_name);
INSTANTIATE_TEST_SUITE_P(PlainNic, DeviceSession,
                         testing::ValuesIn(in_every_mode([](std::size_t end) { return open(plain(), end); })),
                         device_session_name);

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

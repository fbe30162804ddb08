// Runs the fabric suite on two NICs that rdma_cm connects. Other tests are about peers that rdma_cm does not
// reach.
#include "fabric/suite/fabric_suite.h"
#include "fabric/verbs_loader.h"
#include "nic/device/host.h"
#include "nic/device/profiles.h"
#include "nic/open.h"

namespace rdma_rpc::fabric::test {
namespace {

class ManagedFabric final : public FabricUnderTest {
 public:
  ManagedFabric() {
    machine_.has_manager = true;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string name = "nic" + std::to_string(i), ip = "10.0.0." + std::to_string(i + 1);
      host_.addresses.push_back({"eth" + std::to_string(i), ip, static_cast<unsigned>(i + 1)});
      nics_[i] = &machine_.add(nic::named(name, nic::profile_named("mlx5")));
      devices_[i] = nic::open(*nics_[i], nic::by_manager());
    }
  }
  ~ManagedFabric() override {
    for (auto& device : devices_) device.reset();
    for (const nic::Nic* each : nics_) EXPECT_EQ(each->misuse, std::vector<std::string>{});
  }
  Device& client() override { return *devices_[0]; }
  Device& server() override { return *devices_[1]; }
  void pump() override {}
  int idle_rounds() const override { return 100; }
  std::size_t case_stride() const override { return 37; }

 private:
  nic::Host host_;
  nic::Machine machine_;
  nic::Nic* nics_[2];
  std::unique_ptr<Device> devices_[2];
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(NicByManager, FabricSuite,
                         ::testing::Values(FabricFactory{"mlx5",
                                                         [] { return std::make_unique<ManagedFabric>(); }}),
                         factory_name);

}  // namespace rdma_rpc::fabric::test

namespace rdma_rpc::nic {
namespace {

class ByManager : public testing::Test {
 protected:
  ByManager() {
    machine_.has_manager = true;
    host_.addresses = {{"eth0", "10.0.0.1", 1}, {"eth1", "10.0.0.2", 2}};
    for (std::size_t i = 0; i < 2; ++i) devices_[i] = open(*nics_[i], by_manager());
  }
  Host host_;
  Machine machine_;
  Nic* nics_[2] = {&machine_.add(named("nic0")), &machine_.add(named("nic1"))};
  std::unique_ptr<fabric::Device> devices_[2];
};

TEST_F(ByManager, QueuePairsConnect) {
  const Connected pair(*devices_[0], *devices_[1]);
  EXPECT_EQ(pair.error, "");
  EXPECT_TRUE(pair.up());
}

/// The peer notices the end by the disconnect message of rdma_cm, although no request is under way.
TEST_F(ByManager, TheEndOfOneSideEndsTheOther) {
  Connected pair(*devices_[0], *devices_[1]);
  ASSERT_EQ(pair.error, "");
  pair.client->to_error();
  fabric::Wc none[1];
  for (int i = 0; i < 1'000'000 && pair.server->state() != fabric::QpState::err; ++i) {
    pair.server_cq->acknowledge();
    pair.server_cq->poll({none, 1});
  }
  EXPECT_EQ(pair.server->error(), "the peer has closed the connection");
}

/// A bond fails over, and rdma_cm reports it to the side whose address has moved. That side ends the
/// connection, which the other side notices.
TEST_F(ByManager, AnAddressThatMovesToOtherHardwareEndsTheConnection) {
  Connected pair(*devices_[0], *devices_[1]);
  ASSERT_EQ(pair.error, "");
  nics_[0]->move_address();
  fabric::Wc none[1];
  const auto ended = [&] {
    return pair.client->state() == fabric::QpState::err && pair.server->state() == fabric::QpState::err;
  };
  for (int i = 0; i < 1'000'000 && !ended(); ++i) {
    for (const auto& cq : {pair.client_cq.get(), pair.server_cq.get()}) {
      cq->acknowledge();
      cq->poll({none, 1});
    }
  }
  EXPECT_EQ(pair.client->error(),
            "the address of nic0 has moved to other hardware, as when a bond fails over "
            "(RDMA_CM_EVENT_ADDR_CHANGE)");
  EXPECT_EQ(pair.server->error(), "the peer has closed the connection");
  const Connected next(*devices_[0], *devices_[1]);
  EXPECT_EQ(next.error, "");
}

/// The interval after which a request is repeated is a part of the limit of the attempt, not of the device.
TEST_F(ByManager, ARequestIsRepeatedWithinTheLimitOfItsAttempt) {
  auto by_minutes = by_manager();
  by_minutes.connect_timeout_ms = 600'000;
  devices_[0].reset();
  devices_[0] = open(*nics_[0], by_minutes);
  nics_[0]->requests_to_lose = 1;
  const Connected pair(*devices_[0], *devices_[1],
                       {.send_wr_max = 16, .recv_wr_max = 16, .connect_timeout_ms = 4000});
  EXPECT_EQ(pair.error, "");
  EXPECT_TRUE(pair.up());
}

TEST_F(ByManager, AnAttemptWithoutAnswersEndsAtItsOwnLimit) {
  nics_[0]->requests_to_lose = UINT32_MAX;
  const Connected pair(*devices_[0], *devices_[1],
                       {.send_wr_max = 16, .recv_wr_max = 16, .connect_timeout_ms = 40});
  fabric::Wc none[1];
  while (pair.client->state() != fabric::QpState::err) pair.client_cq->poll({none, 1});
  const std::string why = pair.client->error();
  EXPECT_EQ(why.find("no answer from 10.0.0.2:"), 0u) << why;
  EXPECT_NE(
      why.find(" within 40 ms (one device's part of the shorter of option verbs.connectTimeoutMs, which is "
               "4000 ms, and 80 % of option connectTimeoutMs of the channel)"),
      std::string::npos)
      << why;
}

TEST_F(ByManager, AListenerThatHasGoneIsNamed) {
  const auto cq = devices_[0]->create_cq(16);
  auto other = devices_[1]->create_cq(16);
  std::string error;
  auto client = devices_[0]->create_qp(*cq, {.send_wr_max = 16, .recv_wr_max = 16}, &error);
  auto server =
      devices_[1]->create_qp(*other, {.send_wr_max = 16, .recv_wr_max = 16, .active = false}, &error);
  ASSERT_NE(server, nullptr) << error;
  const auto address = server->local_address();
  server.reset();
  other.reset();  // A completion queue ends before its device.
  devices_[1].reset();
  ASSERT_EQ(client->connect(address), "");
  fabric::Wc none[1];
  for (int i = 0; i < 1'000'000 && client->state() != fabric::QpState::err; ++i) {
    cq->acknowledge();
    cq->poll({none, 1});
  }
  EXPECT_EQ(client->error().find("no server listens at 10.0.0.2:"), 0u) << client->error();
}

}  // namespace
}  // namespace rdma_rpc::nic

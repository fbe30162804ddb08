// Addresses and MTUs change while a server runs, for example because of DHCP, `netplan apply` or a new subnet
// manager. A queue pair is connected with the current values, and not with the values from the time when the
// device was opened.
#include <set>

#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

class PortThatChanges : public testing::Test {
 protected:
  /// Makes the device report an event and read it.
  void notice(ibv_event_type type) {
    client_nic_.report(type);
    const auto cq = client_->create_cq(1);
    cq->acknowledge();
  }
  void expect_connects() {
    const Connected pair(*client_, *server_);
    EXPECT_EQ(pair.error, "");
  }

  Machine machine_;
  Nic& client_nic_ = machine_.add(named("nic0"));
  Nic& server_nic_ = machine_.add(named("nic1"));
  std::unique_ptr<fabric::Device> client_ = open(client_nic_), server_ = open(server_nic_);
};

TEST_F(PortThatChanges, FindsItsAddressAtAnotherIndex) {
  expect_connects();
  for (Nic* nic : {&client_nic_, &server_nic_}) {
    nic->set_gid(1, "");
    nic->set_gid(5, nic == &client_nic_ ? "10.0.0.1" : "10.0.0.2");
    expect_connects();
  }
}

TEST_F(PortThatChanges, TakesTheAddressThatItHasNow) {
  client_nic_.set_gid(1, "10.0.0.77");
  expect_connects();
  EXPECT_NE(client_->capabilities().path.find("10.0.0.77"), std::string::npos)
      << client_->capabilities().path;
}

TEST_F(PortThatChanges, ShowsTheNewAddressOnceTheDeviceReportsIt) {
  for (const ibv_event_type type :
       {IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_CLIENT_REREGISTER}) {
    const std::string address = "10.0.1." + std::to_string(type);
    client_nic_.set_gid(1, address);
    notice(type);
    EXPECT_NE(client_->capabilities().path.find(address), std::string::npos) << client_->capabilities().path;
  }
}

TEST_F(PortThatChanges, KeepsItsAddressThoughAnotherOneComesFirst) {
  client_nic_.set_gid(1, "");
  client_nic_.set_gid(2, "10.0.0.99");
  client_nic_.set_gid(3, "10.0.0.1");
  expect_connects();
  EXPECT_NE(client_->capabilities().path.find("10.0.0.1"), std::string::npos) << client_->capabilities().path;
}

TEST_F(PortThatChanges, AnAddressThatGoesWhileTheConnectionIsMadeIsNamed) {
  const auto client_cq = client_->create_cq(64), server_cq = server_->create_cq(64);
  std::string error;
  const auto client = client_->create_qp(*client_cq, {.active = true}, &error);
  const auto server = server_->create_qp(*server_cq, {.active = false}, &error);
  ASSERT_NE(server, nullptr) << error;
  client_nic_.set_gid(1, "10.0.0.77");
  error = client->connect(server->local_address());
  EXPECT_NE(
      error.find("the GID 10.0.0.1 of nic0 has gone while the connection was made; it is 10.0.0.77 now"),
      std::string::npos)
      << error;
}

/// The path MTU follows the MTU of the port when it grows and when it shrinks.
TEST_F(PortThatChanges, HasTheMtuOfNow) {
  std::vector<ibv_mtu> told;
  client_nic_.told = [&](const ibv_qp_attr& attr, int mask) {
    if ((mask & IBV_QP_PATH_MTU) != 0) told.push_back(attr.path_mtu);
  };
  for (const ibv_mtu mtu : {IBV_MTU_1024, IBV_MTU_4096}) {
    server_nic_.port.active_mtu = client_nic_.port.active_mtu = mtu;
    expect_connects();
  }
  EXPECT_EQ(told, (std::vector<ibv_mtu>{IBV_MTU_1024, IBV_MTU_4096}));
}

/// Switches choose one of several paths by the UDP source port, which is computed from the flow label.
TEST_F(PortThatChanges, ConnectionsDifferInTheirFlowLabels) {
  std::set<std::uint32_t> labels;
  client_nic_.told = [&](const ibv_qp_attr& attr, int mask) {
    if ((mask & IBV_QP_AV) != 0) labels.insert(attr.ah_attr.grh.flow_label);
  };
  for (int i = 0; i < 16; ++i) expect_connects();
  EXPECT_GE(labels.size(), 12u);
  EXPECT_FALSE(labels.contains(0));
}

/// Packets of an InfiniBand port are addressed by LID unless a global route is needed.
TEST(InfinibandPort, FollowsItsLidAndTakesARouteOnlyWhereOneIsNeeded) {
  Machine machine;
  Nic* nics[2] = {&machine.add(named("ib0")), &machine.add(named("ib1"))};
  std::vector<ibv_ah_attr> paths;
  for (Nic* nic : nics) {
    nic->port.link_layer = IBV_LINK_LAYER_INFINIBAND;
    nic->port.lid = nic == nics[0] ? 7 : 8;
    nic->gids = {{}};
    nic->gids[0].port_num = 1;
    nic->gids[0].gid_type = IBV_GID_TYPE_IB;
    nic->gids[0].gid.raw[0] = 0xfe;
    nic->gids[0].gid.raw[15] = static_cast<std::uint8_t>(nic->port.lid);
  }
  const auto client = open(*nics[0]), server = open(*nics[1]);
  nics[0]->told = [&](const ibv_qp_attr& attr, int mask) {
    if ((mask & IBV_QP_AV) != 0) paths.push_back(attr.ah_attr);
  };
  const auto path_of_next = [&] {
    paths.clear();
    const Connected pair(*client, *server);
    EXPECT_EQ(pair.error, "");
    EXPECT_EQ(paths.size(), 1u);
    return paths.empty() ? ibv_ah_attr{} : paths[0];
  };
  EXPECT_EQ(path_of_next().is_global, 0);
  nics[1]->port.lid = 9;
  EXPECT_EQ(path_of_next().dlid, 9);
  nics[0]->port.flags = IBV_QPF_GRH_REQUIRED;
  EXPECT_EQ(path_of_next().is_global, 1);
  nics[0]->port.flags = 0;
  nics[1]->gids[0].gid.raw[7] = 1;
  EXPECT_EQ(path_of_next().is_global, 1) << "the peer is in another subnet";
}

}  // namespace
}  // namespace rdma_rpc::nic

// Tests UC, UD and multicast on a NIC. The tests check that a request that the driver refuses fails with the
// driver's reason, that a group is also joined on the network, and that queue pairs and groups end in the
// right order.
#include <arpa/inet.h>

#include <algorithm>

#include "fabric/suite/fabric_suite.h"
#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

using namespace fabric;

constexpr std::uint32_t kQkey = 5;

/// A UD queue pair in RTS, on a NIC of its own machine.
class Datagrams : public ::testing::Test {
 protected:
  void open_nic(const Profile& profile, bool ipv6 = false) {
    nic_ = &machine_.add(named("nic0", profile));
    if (ipv6) nic_->gids.front().gid.raw[0] = 0x20;
    device_ = open(*nic_);
    cq_ = device_->create_cq(64);
  }
  std::unique_ptr<QueuePair> make() {
    auto qp = device_->create_qp(
        *cq_, {.type = QpType::ud, .qkey = kQkey, .send_wr_max = 8, .recv_wr_max = 8}, &why_);
    if (qp != nullptr) why_ = qp->connect({});
    EXPECT_EQ(why_, "");
    return qp;
  }

  Machine machine_;
  Nic* nic_ = nullptr;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CompletionQueue> cq_;
  std::string why_;
};

TEST_F(Datagrams, TypesThatTheDriverRefusesAreRefusedWithItsReason) {
  Profile profile = capable();
  profile.has_uc = profile.has_ud = false;
  open_nic(profile);
  for (const Feature feature : {Feature::uc, Feature::ud}) {
    EXPECT_FALSE(device_->capabilities().has(feature));
    EXPECT_NE(device_->capabilities().why_not(feature).find("Operation not supported"), std::string::npos)
        << device_->capabilities().why_not(feature);
  }
  EXPECT_NE(device_->capabilities().why_not(Feature::multicast).find("no UD queue pairs"), std::string::npos);
  EXPECT_EQ(device_->create_qp(*cq_, {.type = QpType::ud}, &why_), nullptr);
  EXPECT_EQ(device_->create_ah({.gid = device_->gid()}, &why_), nullptr);
}

TEST_F(Datagrams, AGroupIsJoinedByTheHostAsWell) {
  open_nic(capable());
  const auto qp = make();
  ASSERT_EQ(qp->attach_multicast(test::group_of_tests()), "");
  ASSERT_EQ(machine_.memberships.size(), 1u);
  EXPECT_EQ(machine_.memberships[0], ::inet_addr("239.7.8.9"));
}

TEST_F(Datagrams, AGroupOutsideOfIpv4IsRefusedOnAnIpv4Network) {
  open_nic(capable());
  const auto qp = make();
  const Gid group{std::byte{0xff}, std::byte{0x0e}};
  EXPECT_NE(qp->attach_multicast(group).find("ff0e::ffff:A.B.C.D"), std::string::npos);
  Gid unicast = test::group_of_tests();
  unicast[12] = std::byte{10};
  EXPECT_NE(qp->attach_multicast(unicast), "");
  EXPECT_EQ(device_->create_ah({.gid = unicast}, &why_), nullptr);
  EXPECT_NE(why_.find("multicast address of IPv4"), std::string::npos) << why_;
  EXPECT_TRUE(machine_.memberships.empty());
}

/// Destroying a queue pair also ends the flush of its requests, which the NIC completes late here.
TEST_F(Datagrams, AMemberOfGroupsCanBeDestroyed) {
  Profile profile = capable();
  profile.late_polls = 2;
  open_nic(profile);
  for (const bool fails_first : {false, true}) {
    auto qp = make();
    ASSERT_EQ(qp->attach_multicast(test::group_of_tests()), "");
    const RecvWr receive{1, {}};
    ASSERT_EQ(qp->post_recv({&receive, 1}), 1u);
    if (fails_first) qp->to_error();
    Wc wc;
    for (int i = 0; fails_first && i < 10; ++i) cq_->poll({&wc, 1});
    qp.reset();
    EXPECT_EQ(nic_->live.queue_pairs, 0u);
  }
}

TEST_F(Datagrams, AnAddressHandleNeedsAGid) {
  open_nic(capable());
  EXPECT_EQ(device_->create_ah({}, &why_), nullptr);
  EXPECT_NE(why_.find("it needs the GID of a port or group"), std::string::npos) << why_;
}

TEST_F(Datagrams, AnAnswerFindsItsWayOverIpv6Too) {
  open_nic(capable(), true);
  const auto a = make(), b = make();
  std::vector<std::byte> bytes(256);
  const auto region = device_->reg_mr(bytes.data(), bytes.size(), access_local_write, &why_);
  const auto to_self = device_->create_ah({.gid = device_->gid()}, &why_);
  ASSERT_NE(to_self, nullptr) << why_;
  const RecvWr receive{1, {region->addr(), 64, region->lkey()}};
  ASSERT_EQ(b->post_recv({&receive, 1}), 1u);
  SendWr wr;
  wr.ud = {to_self.get(), b->qp_num(), kQkey};
  ASSERT_EQ(a->post_send({&wr, 1}), 1u);
  Wc wc;
  while (cq_->poll({&wc, 1}) == 0) {
  }
  ASSERT_EQ(wc.status, WcStatus::success);
  ASSERT_TRUE(wc.has_grh);
  const auto back = device_->create_ah_from(wc, bytes.data(), &why_);
  ASSERT_NE(back, nullptr) << why_;
  EXPECT_EQ(back->attr().gid, device_->gid());
}

TEST_F(Datagrams, OnInfiniBandAnAnswerUsesTheLidOfTheCompletion) {
  nic_ = &machine_.add(named("nic0"));
  nic_->port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  nic_->port.lid = 9;
  nic_->gids.front().gid_type = IBV_GID_TYPE_IB;
  device_ = open(*nic_);
  cq_ = device_->create_cq(64);
  EXPECT_NE(device_->capabilities().why_not(Feature::multicast).find("subnet manager"), std::string::npos);
  EXPECT_EQ(device_->create_ah({.gid = device_->gid()}, &why_), nullptr);
  EXPECT_NE(why_.find("LID"), std::string::npos) << why_;
  std::vector<std::byte> grh(kGrhBytes);
  const Gid own = device_->gid();
  std::copy(own.begin(), own.end(), grh.begin() + kGrhSourceGid);
  const auto back =
      device_->create_ah_from({.has_grh = true, .service_level = 3, .slid = 9}, grh.data(), &why_);
  ASSERT_NE(back, nullptr) << why_;
  EXPECT_EQ(back->attr().lid, 9);
  EXPECT_EQ(back->attr().service_level, 3);
  EXPECT_EQ(back->attr().gid, own);
}

TEST_F(Datagrams, SilentDatagramsFreeTheirEntries) {
  open_nic(capable());
  const auto qp = make();
  const auto to_self = device_->create_ah({.gid = device_->gid()}, &why_);
  Wc wc;
  SendWr wr;
  wr.ud = {to_self.get(), 0xfffff0, kQkey};
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(cq_->poll({&wc, 1}), 0u) << "it was not signaled";
    ASSERT_EQ(qp->post_send({&wr, 1}), 1u) << "after " << i;
  }
}

}  // namespace
}  // namespace rdma_rpc::nic

// Tests a network that loses packets for a while, because a bond fails over, a cable is unplugged or a switch
// has a smaller MTU; and peers that are not ready for a moment.
#include <chrono>
#include <optional>

#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

using std::chrono::milliseconds;

class Link : public testing::Test {
 protected:
  void connect(const fabric::VerbsOptions& options = {}) {
    for (std::size_t i = 0; i < 2; ++i) devices_[i] = open(*nics_[i], options);
    pair_ = std::make_unique<Connected>(*devices_[0], *devices_[1]);
    ASSERT_EQ(pair_->error, "");
  }
  void post_receive() {
    const fabric::RecvWr none{};
    ASSERT_EQ(pair_->server->post_recv({&none, 1}), 1u);
  }
  void post_send() {
    fabric::SendWr send;
    send.wr_id = 3;
    send.signaled = true;
    ASSERT_EQ(pair_->client->post_send({&send, 1}), 1u);
  }
  /// Returns the status of the SEND, or nullopt while it is outstanding.
  std::optional<fabric::WcStatus> status() {
    fabric::Wc wc;
    for (int polls = 0; polls < 8; ++polls) {
      if (pair_->client_cq->poll({&wc, 1}) != 0 && wc.wr_id == 3) return wc.status;
    }
    return std::nullopt;
  }
  /// Sends while all packets are lost for `time`, and returns the status of the SEND.
  std::optional<fabric::WcStatus> outage(milliseconds time) {
    post_receive();
    nics_[1]->lose_link();
    post_send();
    EXPECT_EQ(status(), std::nullopt);
    nics_[1]->find_link(time);
    return status();
  }

  Machine machine_;
  Nic* nics_[2] = {&machine_.add(named("nic0")), &machine_.add(named("nic1"))};
  std::unique_ptr<fabric::Device> devices_[2];
  std::unique_ptr<Connected> pair_;
};

/// By default a packet is sent 7 times, 268 ms apart.
TEST_F(Link, ThatIsLostForLessThanAllRetriesIsNotNoticed) {
  connect();
  EXPECT_EQ(outage(milliseconds(1'870)), fabric::WcStatus::success);
}

TEST_F(Link, ThatIsLostForLongerEndsTheQueuePair) {
  connect();
  EXPECT_EQ(outage(milliseconds(1'890)), fabric::WcStatus::retry_exc_err);
}

/// A dead host is noticed sooner, and a second without packets is too long.
TEST_F(Link, ThatIsLostEndsTheQueuePairSoonerWithAShorterTimeout) {
  fabric::VerbsOptions options;
  options.ack_timeout = 14;
  connect(options);
  EXPECT_EQ(outage(milliseconds(1'000)), fabric::WcStatus::retry_exc_err);
}

/// A bond (LAG) that fails over to its other link, with the default options.
TEST_F(Link, ThatPausesForASecondKeepsItsQueuePair) {
  connect();
  EXPECT_EQ(outage(milliseconds(1'000)), fabric::WcStatus::success);
}

/// The cable is plugged in again before the retries are over.
TEST_F(Link, OfAPortThatFlapsGoesOn) {
  connect();
  post_receive();
  nics_[0]->set_port(IBV_PORT_DOWN);
  post_send();
  pair_->client_cq->acknowledge();
  EXPECT_EQ(status(), std::nullopt);
  nics_[0]->find_link(milliseconds(200));
  nics_[0]->set_port(IBV_PORT_ACTIVE);
  pair_->client_cq->acknowledge();
  EXPECT_EQ(status(), fabric::WcStatus::success);
}

/// A peer with on-demand paging may have to load a page first, and announces this in its address.
TEST_F(Link, ToAPeerThatLoadsAPageIsAskedAgain) {
  nics_[1]->profile.page_fault_every = 1;
  fabric::VerbsOptions options;
  options.on_demand = true;
  connect(options);
  post_receive();
  post_send();
  EXPECT_EQ(status(), std::nullopt);
  nics_[1]->profile.page_fault_every = 0;
  post_receive();
  EXPECT_EQ(status(), fabric::WcStatus::success);
}

TEST_F(Link, ToAPeerThatIsNeverReadyEndsOtherwise) {
  nics_[1]->profile.page_fault_every = 1;
  connect();
  post_receive();
  post_send();
  EXPECT_EQ(status(), fabric::WcStatus::rnr_retry_exc_err);
}

/// When the MTU of the path becomes smaller, packets of the agreed size are lost and small ones arrive. The
/// connection ends when its retries fail. The next connection uses the new MTU of the port.
TEST_F(Link, WithASmallerMtuEndsOneConnectionAndTheNextFits) {
  connect();
  nics_[1]->wire_mtu = 1024;
  nics_[1]->port.active_mtu = IBV_MTU_1024;
  const auto memory = devices_[0]->alloc_memory(4096, "test");
  std::string error;
  const auto region = devices_[0]->reg_mr(memory->data(), 4096, fabric::access_local_write, &error);
  const auto send = [&](std::uint32_t bytes) {
    const fabric::Sge sge{region->addr(), bytes, region->lkey()};
    fabric::SendWr wr;
    wr.wr_id = 3;
    wr.signaled = true;
    wr.sges = {&sge, 1};
    EXPECT_EQ(pair_->client->post_send({&wr, 1}), 1u);
    return status();
  };
  const auto room = devices_[1]->alloc_memory(4096, "test");
  const auto sink = devices_[1]->reg_mr(room->data(), 4096, fabric::access_local_write, &error);
  const fabric::RecvWr receive{1, {sink->addr(), 4096, sink->lkey()}};
  for (int i = 0; i < 2; ++i) ASSERT_EQ(pair_->server->post_recv({&receive, 1}), 1u);
  EXPECT_EQ(send(1024), fabric::WcStatus::success);
  EXPECT_EQ(send(1025), fabric::WcStatus::retry_exc_err);

  for (const ibv_mtu mtu : {IBV_MTU_1024, IBV_MTU_4096}) {
    nics_[1]->wire_mtu = 128u << mtu;
    nics_[1]->port.active_mtu = mtu;
    pair_ = std::make_unique<Connected>(*devices_[0], *devices_[1]);
    ASSERT_EQ(pair_->error, "");
    ASSERT_EQ(pair_->server->post_recv({&receive, 1}), 1u);
    EXPECT_EQ(send(4096), fabric::WcStatus::success) << mtu;
  }
}

}  // namespace
}  // namespace rdma_rpc::nic

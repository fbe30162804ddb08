// Tests connections without rdma_cm to a GID that no host has. The event loop must go on, and the error must
// name the peer.
#include <cstdlib>
#include <vector>

#include "fabric/verbs/connection_fixture.h"

namespace rdma_rpc::fabric::test {
namespace {

/// Without rdma_cm, connects to a GID of the test machine's network that no host has. The kernel looks for
/// the GID for a second.
class UnknownGid : public ConnectionTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (std::getenv("RDMA_VM") == nullptr) GTEST_SKIP() << "not run: elsewhere a device may have that GID";
    const std::string why = open_with(kLimitMs);
    if (!why.empty()) GTEST_SKIP() << "not run: " << why;
  }
  void TearDown() override {
    side_.close();
    ConnectionTest::TearDown();
  }

  std::string open_with(std::uint32_t limit_ms) {
    side_.close();
    std::string why = open(VerbsConnect::sideband, VerbsConnect::sideband, limit_ms);
    if (!why.empty()) return why;
    side_ = make(GetParam());
    const End other = make(!GetParam());
    Address address = read(*other.qp);
    address.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 99};
    nobody_ = verbs::encode(address);
    return "";
  }
  void expect_named() {
    EXPECT_EQ(side_.qp->state(), QpState::err);
    EXPECT_NE(side_.qp->error().find("GID 10.77.0.99"), std::string::npos) << side_.qp->error();
  }

  End side_;
  std::vector<std::byte> nobody_;
};

TEST_P(UnknownGid, DoesNotHoldUpTheLoop) {
  ASSERT_EQ(side_.qp->connect(nobody_), "");
  int turns = 0;
  for (; side_.qp->state() == QpState::rtr; ++turns) turn({&side_});
  // Each waits for a millisecond.
  EXPECT_GT(turns, 10);
  expect_named();
}

TEST_P(UnknownGid, FailsInTimeThoughTheKernelContinues) {
  ASSERT_EQ(open_with(50), "");
  auto memory = side_.device->alloc_memory(4096, "receive");
  std::string error;
  auto region = side_.device->reg_mr(memory->data(), 4096, access_local_write, &error);
  ASSERT_NE(region, nullptr) << error;
  const RecvWr receive{7, {reinterpret_cast<std::uint64_t>(memory->data()), 4096, region->lkey()}};
  ASSERT_EQ(side_.qp->post_recv({&receive, 1}), 1u);
  ASSERT_EQ(side_.qp->connect(nobody_), "");
  // A sleeper is woken for the end of the attempt, and for the end of the queue pair's requests.
  Wc wc{};
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (side_.cq->poll({&wc, 1}) == 0 && std::chrono::steady_clock::now() < deadline) {
    pollfd sleeper{side_.cq->fd(), POLLIN, 0};
    if (side_.cq->arm()) ::poll(&sleeper, 1, 20'000);
    side_.cq->acknowledge();
  }
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.status, WcStatus::wr_flush_err);
  expect_named();
  EXPECT_NE(side_.qp->error().find("within 50 ms"), std::string::npos) << side_.qp->error();
}

TEST_P(UnknownGid, MayBeResolvingWhenTheQueuePairIsDestroyed) {
  ASSERT_EQ(side_.qp->connect(nobody_), "");
  EXPECT_EQ(side_.qp->state(), QpState::rtr);
  side_.close();
  side_ = make(GetParam());
  End other = make(!GetParam());
  ASSERT_EQ(other.qp->connect(side_.qp->local_address()), "");
  ASSERT_EQ(side_.qp->connect(other.qp->local_address()), "");
  expect_up(side_, other);
}

INSTANTIATE_TEST_SUITE_P(Of, UnknownGid, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "AnActiveSide" : "APassiveSide");
});

}  // namespace
}  // namespace rdma_rpc::fabric::test

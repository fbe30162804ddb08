// Tests connections by rdma_cm with hostile, silent and faulty peers. The tests also check that nothing is
// left behind. The tests use the devices of the fabric suite (suite_test.cc).
#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "fabric/verbs/connection_fixture.h"

namespace rdma_rpc::fabric::test {
namespace {

TEST_F(ConnectionTest, ARequestWithTheWrongTokenIsRejectedAndTheRightOneIsNot) {
  End wrong = client(), right = client(), passive = server();
  Address address = read(*passive.qp);
  address.token[7] ^= 1;
  ASSERT_EQ(passive.qp->connect(right.qp->local_address()), "");
  ASSERT_EQ(wrong.qp->connect(verbs::encode(address)), "");
  finish(*wrong.qp, {&wrong, &passive});
  EXPECT_EQ(wrong.qp->state(), QpState::err);
  EXPECT_NE(wrong.qp->error().find("has no queue pair that waits"), std::string::npos) << wrong.qp->error();
  ASSERT_EQ(right.qp->connect(passive.qp->local_address()), "");
  expect_up(right, passive);
}

TEST_F(ConnectionTest, OnlyRequestsOfThePeerOfTheHandshakeAreAccepted) {
  for (const bool request_is_first : {true, false}) {
    End thief = client(), peer = client(), passive = server();
    if (!request_is_first) {
      ASSERT_EQ(passive.qp->connect(peer.qp->local_address()), "");
    }
    ASSERT_EQ(thief.qp->connect(passive.qp->local_address()), "");
    if (request_is_first) {
      for (int i = 0; i < 100; ++i) {
        turn({&thief});
        passive.cq->acknowledge();  // takes the events, too
      }
      ASSERT_EQ(passive.qp->connect(peer.qp->local_address()), "");
    }
    ASSERT_EQ(peer.qp->connect(passive.qp->local_address()), "");
    finish({&thief, &peer, &passive});
    EXPECT_EQ(thief.qp->state(), QpState::err);
    EXPECT_EQ(peer.qp->state(), QpState::rts) << peer.qp->error();
    EXPECT_EQ(passive.qp->state(), QpState::rts) << passive.qp->error();
  }
}

TEST_F(ConnectionTest, TheRequestMayArriveBeforeTheOtherSideConnects) {
  End active = client(), passive = server();
  ASSERT_EQ(active.qp->connect(passive.qp->local_address()), "");
  for (int i = 0; i < 100; ++i) {
    turn({&active});
    passive.cq->acknowledge();
  }
  EXPECT_EQ(active.qp->state(), QpState::rtr);
  ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
  expect_up(active, passive);
}

TEST_F(ConnectionTest, WithoutAListenerTheErrorSaysSo) {
  End active = client();
  Address address;
  {
    End passive = server();
    address = read(*passive.qp);
  }
  address.ip_port = 1;
  expect_failure(active, verbs::encode(address), "no server listens at");
}

TEST_F(ConnectionTest, APeerThatNeverAnswersFailsTheConnection) {
  End active = client(), silent = server();
  expect_failure(active, silent.qp->local_address(), "within 1500 ms");
}

TEST_F(ConnectionTest, APeerThatNeverRequestsFailsTheConnection) {
  End passive = server(), silent = client();
  expect_failure(passive, silent.qp->local_address(), "did not ask for the connection within 1500 ms");
}

TEST_F(ConnectionTest, AnAddressOfAnotherNetworkFailsTheConnection) {
  End active = client(), passive = server();
  Address address = read(*passive.qp);
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 203, 0, 113, 9};
  const std::string why = active.qp->connect(verbs::encode(address));
  finish({&active});
  EXPECT_EQ(active.qp->state(), QpState::err);
  EXPECT_NE((why + active.qp->error()).find("203.0.113.9"), std::string::npos) << why << active.qp->error();
}

TEST_F(ConnectionTest, TwoSidesOfTheSameKindAreRefused) {
  End one = client(), other = client();
  EXPECT_NE(one.qp->connect(other.qp->local_address()), "");
  EXPECT_EQ(one.qp->state(), QpState::err);
}

TEST_F(ConnectionTest, SidesWithoutACommonWayRefuseEachOther) {
  const std::string why = open(VerbsConnect::cm, VerbsConnect::sideband);
  if (!why.empty()) GTEST_SKIP() << "not run: " << why;
  End active = client(), passive = server();
  for (End* end : {&active, &passive}) {
    const std::string refusal = end->qp->connect((end == &active ? passive : active).qp->local_address());
    EXPECT_NE(refusal.find("by rdma_cm only"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("over the sideband only"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("option connect"), std::string::npos) << refusal;
  }
}

TEST_F(ConnectionTest, ASideWithBothWaysUsesThatOfThePeer) {
  for (const VerbsConnect only : {VerbsConnect::cm, VerbsConnect::sideband}) {
    const std::string why = open(VerbsConnect::automatic, only);
    if (!why.empty()) GTEST_SKIP() << "not run: " << why;
    End active = client(), passive = server();
    ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
    ASSERT_EQ(active.qp->connect(passive.qp->local_address()), "");
    expect_up(active, passive);
  }
}

TEST_F(ConnectionTest, HostileAddressesAreRefusedOrLeadNowhere) {
  End passive = server();
  const auto good = passive.qp->local_address();
  std::mt19937 random(20260101);
  for (int i = 0; i < 300; ++i) {
    auto address = good;
    const std::uint32_t changes = random() % 4 + 1;
    for (std::uint32_t k = 0; k < changes; ++k) address[random() % address.size()] = std::byte(random());
    if (i % 10 == 0) address.resize(random() % (good.size() + 64));
    if (address == good) continue;
    End active = client();
    const std::string why = active.qp->connect(address);
    EXPECT_EQ(active.qp->state() == QpState::err, !why.empty()) << why;
    turn({&active, &passive});
  }
  // The passive side is not affected.
  End active = client();
  ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
  ASSERT_EQ(active.qp->connect(good), "");
  expect_up(active, passive);
}

TEST_F(ConnectionTest, FiftyAtOnce) {
  End active = client(), passive = server();
  std::vector<std::unique_ptr<QueuePair>> active_ones, passive_ones;
  for (int i = 0; i < 50; ++i) {
    active_ones.push_back(make_qp(active, true));
    passive_ones.push_back(make_qp(passive, false));
    ASSERT_EQ(passive_ones.back()->connect(active_ones.back()->local_address()), "");
  }
  for (std::size_t i = 0; i < active_ones.size(); ++i) {
    ASSERT_EQ(active_ones[i]->connect(passive_ones[i]->local_address()), "");
  }
  for (const auto* ones : {&active_ones, &passive_ones}) {
    for (const auto& qp : *ones) {
      finish(*qp, {&active, &passive});
      EXPECT_EQ(qp->state(), QpState::rts) << qp->error();
    }
  }
}

TEST_F(ConnectionTest, EitherSideMayCloseAtAnyMoment) {
  for (int turns = 0; turns < 24; ++turns) {
    End active = client(), passive = server();
    ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
    ASSERT_EQ(active.qp->connect(passive.qp->local_address()), "");
    for (int i = 0; i < turns; ++i) turn({&active, &passive});
    End& gone = turns % 2 == 0 ? active : passive;
    End& left = turns % 2 == 0 ? passive : active;
    gone.close();
    const auto deadline = std::chrono::steady_clock::now() + kTimeout;
    while (left.qp->state() != QpState::err && std::chrono::steady_clock::now() < deadline) {
      turn({&left});
      left.cq->acknowledge();
    }
    EXPECT_EQ(left.qp->state(), QpState::err) << "after " << turns << " turns";
  }
}

TEST_F(ConnectionTest, ASleeperIsWokenForEachStepAndForTheEnd) {
  End active = client(), passive = server();
  const auto sleep = [&](auto&& until) {
    const auto deadline = std::chrono::steady_clock::now() + kTimeout;
    while (!until() && std::chrono::steady_clock::now() < deadline) {
      pollfd sleepers[] = {{active.cq->fd(), POLLIN, 0}, {passive.qp ? passive.cq->fd() : -1, POLLIN, 0}};
      for (End* end : {&active, &passive}) {
        Wc batch[4];
        if (end->qp == nullptr) continue;
        end->cq->poll(batch);
        end->cq->arm();
      }
      if (until()) return;
      ASSERT_GT(::poll(sleepers, 2, 20'000), 0) << "nobody was woken";
      active.cq->acknowledge();
      if (passive.qp != nullptr) passive.cq->acknowledge();
    }
  };
  ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
  ASSERT_EQ(active.qp->connect(passive.qp->local_address()), "");
  sleep([&] { return active.qp->state() == QpState::rts && passive.qp->state() == QpState::rts; });
  EXPECT_EQ(passive.qp->state(), QpState::rts) << passive.qp->error();
  passive.qp.reset();
  sleep([&] { return active.qp->state() == QpState::err; });
  EXPECT_EQ(active.qp->state(), QpState::err);
}

/// Cuts the network of the test machine while this object lives. The neighbours already know each other's
/// addresses. Therefore the connection request gets no answer, whereas the address query was answered.
class Cut {
 public:
  Cut() { EXPECT_EQ(std::system("tc qdisc add dev v0 root netem loss 100%"), 0); }
  ~Cut() { mend(); }
  void mend() {
    if (std::exchange(cut_, false)) {
      EXPECT_EQ(std::system("tc qdisc del dev v0 root"), 0);
    }
  }

 private:
  bool cut_ = true;
};
constexpr char kNoWire[] = "not run: only the wire of the test machine may be cut";

TEST_F(ConnectionTest, AWireThatIsCutForAMomentDelaysTheConnection) {
  if (std::getenv("RDMA_VM") == nullptr) GTEST_SKIP() << kNoWire;
  const bool tcp = devices_[0]->capabilities().active_side_sends_first;
  if (tcp) GTEST_SKIP() << "not run: on iWARP it is TCP that repeats, after a second and more";
  make_neighbours();
  End active = client(), passive = server();
  Cut cut;
  ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
  ASSERT_EQ(active.qp->connect(passive.qp->local_address()), "");
  for (int i = 0; i < 50; ++i) turn({&active, &passive});
  EXPECT_EQ(active.qp->state(), QpState::rtr);
  cut.mend();
  expect_up(active, passive);
}

TEST_F(ConnectionTest, AWireThatIsCutEndsTheAttemptInTime) {
  if (std::getenv("RDMA_VM") == nullptr) GTEST_SKIP() << kNoWire;
  make_neighbours();
  End active = client(), passive = server();
  Cut cut;
  expect_failure(active, passive.qp->local_address(), "within 1500 ms");
  // The kernel may still be working on the request; closing does not wait for the kernel.
  active.close();
  cut.mend();
  End again = client();
  ASSERT_EQ(passive.qp->connect(again.qp->local_address()), "");
  ASSERT_EQ(again.qp->connect(passive.qp->local_address()), "");
  expect_up(again, passive);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

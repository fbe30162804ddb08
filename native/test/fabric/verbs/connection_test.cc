// Connections by rdma_cm: what hostile, silent and mistaken peers lead to, and that nothing is left behind.
// On the devices of the fabric suite (verbs_suite_test.cc).
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <utility>

#include "fabric/verbs/address.h"
#include "fabric/verbs/verbs_devices.h"

namespace rdma_rpc::fabric::test {
namespace {

using verbs::Address;

constexpr std::uint32_t kLimitMs = 1500;
constexpr auto kPatience = std::chrono::seconds(20);

/// A queue pair with a completion queue of its own, on one of two devices.
struct End {
  Device* device = nullptr;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;

  void close() {
    qp.reset();
    cq.reset();
  }
};

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why = open(VerbsConnect::cm, VerbsConnect::cm);
    if (!why.empty()) GTEST_SKIP() << "not run: " << why;
  }

  void TearDown() override {
    for (std::size_t i = 0; i < 2; ++i) {
      if (devices_[i] == nullptr) continue;
      EXPECT_EQ(devices_[i]->counters().queue_pairs, start_[i].queue_pairs);
      EXPECT_EQ(devices_[i]->counters().open_fds, start_[i].open_fds);
    }
  }

  std::string open(VerbsConnect client, VerbsConnect server, std::uint32_t limit_ms = kLimitMs) {
    std::string error;
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
      VerbsOptions options = test_options(which, which == 0 ? client : server);
      options.connect_timeout_ms = limit_ms;
      devices_[which] = open_verbs_device(options, &error);
      if (devices_[which] == nullptr) return error;
      start_[which] = devices_[which]->counters();
    }
    return "";
  }

  End make(bool active) {
    End end;
    end.device = devices_[active ? 0 : 1].get();
    end.cq = end.device->create_cq(64);
    end.qp = make_qp(end, active);
    return end;
  }
  static std::unique_ptr<QueuePair> make_qp(End& end, bool active) {
    std::string error;
    auto qp = end.device->create_qp(*end.cq, {.send_wr_max = 8, .recv_wr_max = 8, .active = active}, &error);
    EXPECT_NE(qp, nullptr) << error;
    return qp;
  }
  End client() { return make(true); }
  End server() { return make(false); }

  static void turn(std::initializer_list<End*> ends) {
    Wc batch[16];
    for (End* end : ends) {
      if (end->cq != nullptr) end->cq->poll(batch);
    }
    ::poll(nullptr, 0, 1);
  }

  /// Polls until none of them is under way.
  static void finish(std::initializer_list<End*> ends) {
    for (End* end : ends) finish(*end->qp, ends);
  }
  /// Polls all until that one is no longer under way.
  static void finish(const QueuePair& one, std::initializer_list<End*> all) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (one.state() == QpState::rtr && std::chrono::steady_clock::now() < deadline) turn(all);
  }

  static void expect_up(End& a, End& b) {
    finish({&a, &b});
    EXPECT_EQ(a.qp->state(), QpState::rts) << a.qp->error();
    EXPECT_EQ(b.qp->state(), QpState::rts) << b.qp->error();
  }

  /// The attempt begins, and comes to nothing for a reason that holds `text`.
  static void expect_failure(End& end, std::span<const std::byte> address, const std::string& text) {
    ASSERT_EQ(end.qp->connect(address), "");
    finish({&end});
    EXPECT_EQ(end.qp->state(), QpState::err);
    EXPECT_NE(end.qp->error().find(text), std::string::npos) << end.qp->error();
  }

  /// Each knows the other's hardware address afterwards.
  void make_neighbours() {
    End one = client(), other = server();
    ASSERT_EQ(other.qp->connect(one.qp->local_address()), "");
    ASSERT_EQ(one.qp->connect(other.qp->local_address()), "");
    expect_up(one, other);
  }

  static Address read(const QueuePair& qp) {
    Address address, anyone;
    verbs::Way way{};
    const auto bytes = qp.local_address();
    // The fields are set before anything is compared.
    static_cast<void>(verbs::decode(bytes, anyone, &address, &way));
    return address;
  }

  std::unique_ptr<Device> devices_[2];
  DeviceCounters start_[2];
};

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

TEST_F(ConnectionTest, ARequestOfAnybodyButThePeerOfTheHandshakeIsRejected) {
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

TEST_F(ConnectionTest, TheRequestMayBeThereBeforeTheOtherSideConnects) {
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

TEST_F(ConnectionTest, WhereNobodyListensTheErrorSaysSo) {
  End active = client();
  Address address;
  {
    End passive = server();
    address = read(*passive.qp);
  }
  address.ip_port = 1;
  expect_failure(active, verbs::encode(address), "nobody listens at");
}

TEST_F(ConnectionTest, APeerThatNeverAnswersIsGivenUp) {
  End active = client(), silent = server();
  expect_failure(active, silent.qp->local_address(), "within 1500 ms");
}

TEST_F(ConnectionTest, APeerThatNeverAsksIsGivenUp) {
  End passive = server(), silent = client();
  expect_failure(passive, silent.qp->local_address(), "did not ask for the connection within 1500 ms");
}

TEST_F(ConnectionTest, AnAddressOfAnotherNetworkIsGivenUp) {
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

TEST_F(ConnectionTest, ASideThatHasOnlyOneWayRefusesOneThatHasOnlyTheOther) {
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

TEST_F(ConnectionTest, ASideThatHasBothWaysTakesTheOneThatThePeerHas) {
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
  // The passive side is none the worse for it.
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

TEST_F(ConnectionTest, EitherSideMayGoAwayAtAnyMoment) {
  for (int turns = 0; turns < 24; ++turns) {
    End active = client(), passive = server();
    ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
    ASSERT_EQ(active.qp->connect(passive.qp->local_address()), "");
    for (int i = 0; i < turns; ++i) turn({&active, &passive});
    End& gone = turns % 2 == 0 ? active : passive;
    End& left = turns % 2 == 0 ? passive : active;
    gone.close();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
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
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
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

/// Without rdma_cm, to a GID of the test machine's network that nobody has: the kernel looks for it for a
/// second.
class UnknownGid : public ConnectionTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (std::getenv("RDMA_VM") == nullptr) GTEST_SKIP() << "not run: elsewhere somebody may have that GID";
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

TEST_P(UnknownGid, IsGivenUpInTimeThoughTheKernelIsNot) {
  ASSERT_EQ(open_with(50), "");
  auto memory = side_.device->alloc_memory(4096, "receive");
  std::string error;
  auto region = side_.device->reg_mr(memory->data(), 4096, access_local_write, &error);
  ASSERT_NE(region, nullptr) << error;
  const RecvWr receive{7, {reinterpret_cast<std::uint64_t>(memory->data()), 4096, region->lkey()}};
  ASSERT_EQ(side_.qp->post_recv({&receive, 1}), 1u);
  ASSERT_EQ(side_.qp->connect(nobody_), "");
  // A sleeper hears of it, and of the end of what the queue pair had.
  Wc wc{};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
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

TEST_P(UnknownGid, MayBeLookedForWhenTheQueuePairGoes) {
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

/// The wire of the test machine, cut while this lives. Between neighbours that know each other: it is the
/// connection that gets no answer, not the question who has the address.
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
  // The kernel may be at it still; closing does not wait for it.
  active.close();
  cut.mend();
  End again = client();
  ASSERT_EQ(passive.qp->connect(again.qp->local_address()), "");
  ASSERT_EQ(again.qp->connect(passive.qp->local_address()), "");
  expect_up(again, passive);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

// Tests connections of the tcp fabric that other code has accepted. Each connection reaches only the queue
// pair that it asks for. Any thread may run the device of that queue pair.
#include <atomic>
#include <thread>

#include "fabric/acceptor.h"
#include "fabric/incoming.h"
#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

const TcpOptions kByHandoff{.host = ""};

/// Listens like a server, reads the first bytes of a connection, and hands the connection over.
class Entrance {
 public:
  Entrance() {
    EXPECT_TRUE(tcp::parse_host("127.0.0.1", &endpoint_));
    sockaddr_storage name{};
    const socklen_t length = tcp::to_sockaddr(endpoint_, &name);
    listener_ = UniqueFd(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), length), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    EXPECT_TRUE(tcp::local_endpoint(listener_.get(), &endpoint_));
  }
  std::uint16_t port() const { return endpoint_.port; }
  /// Returns the address with which `qp` is reached through this listener.
  std::vector<std::byte> to(const QueuePair& qp) const {
    std::string error;
    auto address = tcp_address_via(qp.local_address(), "127.0.0.1", endpoint_.port, &error);
    EXPECT_EQ(error, "");
    return address;
  }
  /// See IncomingConnections.
  std::string admit() { return incoming_.admit(listener_.get()); }

 private:
  UniqueFd listener_;
  tcp::Endpoint endpoint_;
  IncomingConnections incoming_;
};

bool settled(const QueuePair& qp) { return qp.state() != QpState::rtr; }

TEST(TcpHandoff, ASocketAcceptedElsewhereReachesItsQueuePair) {
  Entrance entrance;
  TcpEnd one(false, 4096, kByHandoff), two(false, 4096, kByHandoff), active(true);
  ASSERT_NE(two.qp, nullptr) << two.error;
  ASSERT_EQ(two.qp->connect(active.qp->local_address()), "");
  ASSERT_EQ(active.qp->connect(entrance.to(*two.qp)), "");
  ASSERT_TRUE(active.until([&] {
    const std::string why = entrance.admit();
    EXPECT_TRUE(why.empty() || why == "none") << why;
    one.poll();
    two.poll();
    return settled(*active.qp) && settled(*two.qp);
  }));
  EXPECT_EQ(active.qp->error(), "");
  EXPECT_EQ(two.qp->state(), QpState::rts);
  EXPECT_EQ(one.qp->state(), QpState::init);
  two.receive(7);
  const Sge some = active.sge(0, 100);
  active.post(request(Opcode::send, 1, {&some, 1}));
  ASSERT_TRUE(two.until([&] {
    active.poll();
    return !two.completions.empty();
  }));
  EXPECT_EQ(two.completions[0].wr_id, 7u);
  EXPECT_EQ(two.completions[0].status, WcStatus::success);
}

TEST(TcpHandoff, ASleepingDeviceWakesForASocket) {
  Entrance entrance;
  TcpEnd passive(false, 4096, kByHandoff), active(true);
  ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
  passive.poll();
  ASSERT_TRUE(passive.cq->arm());
  ASSERT_EQ(active.qp->connect(entrance.to(*passive.qp)), "");
  ASSERT_TRUE(active.until([&] { return entrance.admit().empty(); }));
  pollfd bell{passive.cq->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&bell, 1, 20'000), 1);
  passive.cq->acknowledge();
  ASSERT_TRUE(active.until([&] {
    passive.poll();
    return settled(*active.qp);
  }));
  EXPECT_EQ(active.qp->state(), QpState::rts);
}

TEST(TcpHandoff, ARequestForASessionOfAnotherProcessIsAnswered) {
  Entrance entrance;
  TcpEnd passive(false, 4096, kByHandoff), active(true, 4096);
  tcp::Address address;
  ASSERT_EQ(tcp::decode(entrance.to(*passive.qp), &address), "");
  for (const std::size_t byte : {0u, 15u}) {
    // The first bytes of the token name the acceptor, and all of them together name the queue pair.
    address.token[byte] ^= std::byte{1};
    TcpEnd lost(true);
    ASSERT_EQ(lost.qp->connect(tcp::encode(address)), "");
    ASSERT_TRUE(lost.until([&] {
      entrance.admit();
      passive.poll();
      return settled(*lost.qp);
    }));
    EXPECT_NE(lost.qp->error().find("has reached the server"), std::string::npos) << lost.qp->error();
  }
  EXPECT_EQ(passive.qp->state(), QpState::init);
}

TEST(TcpHandoff, AnAddressWithoutAnEndpointCannotBeDialled) {
  TcpEnd passive(false, 4096, kByHandoff), active(true);
  EXPECT_NE(active.qp->connect(passive.qp->local_address()).find("tcp_address_via"), std::string::npos);
}

TEST(TcpHandoff, AnInvalidConnectMessageIsNotHandedOff) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const UniqueFd one(ends[0]), other(ends[1]);
  const auto handed = [&](ConnectMessage message, std::size_t bytes = sizeof(ConnectMessage)) {
    return hand_off(one.get(), {reinterpret_cast<const std::byte*>(&message), bytes});
  };
  ConnectMessage wrong = make_connect_message(ConnectKind::hello, {}, {});
  wrong.magic = 1;
  EXPECT_NE(handed(wrong), "");
  EXPECT_NE(handed(make_connect_message(ConnectKind::welcome, {}, {})), "");
  EXPECT_NE(handed(make_connect_message(ConnectKind::hello, {}, {}), 39), "");
  EXPECT_EQ(::recv(other.get(), &wrong, sizeof wrong, MSG_DONTWAIT), -1) << "nothing is said to such a one";
}

/// Devices are opened and closed on their threads while connections arrive for them, and for devices that are
/// closed already.
TEST(TcpHandoff, DevicesMayCloseWhileConnectionsToThemArrive) {
  constexpr int kThreads = 3, kRounds = 40;
  Entrance entrance;
  std::atomic<int> running{kThreads};
  std::atomic<int> connected{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        TcpEnd passive(false, 4096, kByHandoff), active(true);
        EXPECT_EQ(passive.qp->connect(active.qp->local_address()), "");
        EXPECT_EQ(active.qp->connect(entrance.to(*passive.qp)), "");
        // Every third device is closed at once, while its connection is in progress.
        if ((round + i) % 3 == 0) continue;
        EXPECT_TRUE(active.until([&] {
          passive.poll();
          return settled(*active.qp) && settled(*passive.qp);
        }));
        if (active.qp->state() == QpState::rts && passive.qp->state() == QpState::rts) ++connected;
      }
      --running;
    });
  }
  while (running > 0) entrance.admit();
  for (std::thread& thread : threads) thread.join();
  // (Each thread has 40 rounds; 13 or 14 of them end early.)
  EXPECT_GE(connected, kThreads * (kRounds - 14));
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

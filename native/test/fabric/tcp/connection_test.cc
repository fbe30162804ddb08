// Tests opening and loss of connections of the tcp fabric: unauthenticated peers at the listener, several
// servers behind one address, and a connection that is cut at each of its bytes.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <map>

#include "fabric/tcp/relay.h"

namespace rdma_rpc::fabric::test {
namespace {

/// Returns the address with which `b` is reached through `endpoint`.
std::vector<std::byte> via(const TcpEnd& b, const tcp::Endpoint& endpoint) {
  std::string error;
  const auto address = tcp_address_via(b.qp->local_address(), "127.0.0.1", endpoint.port, &error);
  EXPECT_EQ(error, "");
  return address;
}

bool settles(const QueuePair& qp) { return qp.state() != QpState::rtr; }

/// Returns the other end of this connection if it is also a descriptor of this process, otherwise -1.
int other_end_of(int fd) {
  sockaddr_storage own{}, peer{};
  socklen_t own_length = sizeof own;
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length), 0);
  for (int other = 0; other < 1024; ++other) {
    socklen_t length = sizeof peer;
    if (other == fd || ::getpeername(other, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (length == own_length && std::memcmp(&peer, &own, length) == 0) return other;
  }
  return -1;
}

TEST(TcpConnection, ItsSocketSendsAtOnceKeepsItsQueueShortAndNoticesADeadPeer) {
  TcpEnd end(false, 4096, {.peer_timeout_ms = 8000, .unsent_max = 77'000});
  RawPeer peer(end);
  ASSERT_NO_FATAL_FAILURE(peer.connect());
  const int socket = other_end_of(peer.fd());
  ASSERT_NE(socket, -1);
  const std::map<std::string, std::array<int, 3>> wanted{
      {"TCP_NODELAY", {IPPROTO_TCP, TCP_NODELAY, 1}},
      {"TCP_NOTSENT_LOWAT", {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 77'000}},
      {"TCP_USER_TIMEOUT", {IPPROTO_TCP, TCP_USER_TIMEOUT, 8000}},
      {"SO_KEEPALIVE", {SOL_SOCKET, SO_KEEPALIVE, 1}},
      {"TCP_KEEPIDLE", {IPPROTO_TCP, TCP_KEEPIDLE, 2}},
      {"TCP_KEEPINTVL", {IPPROTO_TCP, TCP_KEEPINTVL, 2}},
      {"TCP_KEEPCNT", {IPPROTO_TCP, TCP_KEEPCNT, 3}},
  };
  for (const auto& [name, option] : wanted) {
    int value = -1;
    socklen_t length = sizeof value;
    EXPECT_EQ(::getsockopt(socket, option[0], option[1], &value, &length), 0) << name;
    EXPECT_EQ(value, option[2]) << name;
  }
}

TEST(TcpConnection, ARequestForAnUnknownQueuePairIsAnswered) {
  TcpEnd end;
  RawPeer peer(end);
  ASSERT_NO_FATAL_FAILURE(peer.dial());
  peer.send_connect_message(Token{});
  const auto bytes = peer.take(sizeof(ConnectMessage));
  ASSERT_EQ(bytes.size(), sizeof(ConnectMessage));
  ConnectMessage answer;
  std::memcpy(&answer, bytes.data(), sizeof answer);
  EXPECT_EQ(answer.kind, ConnectKind::unknown);
  EXPECT_EQ(peer.take(1).size(), 0u) << "and is sent away";
  EXPECT_EQ(end.qp->state(), QpState::init);
}

TEST(TcpConnection, OnlyThePeerOfTheHandshakeIsAccepted) {
  for (const bool before : {true, false}) {
    TcpEnd end;
    RawPeer other_peer(end), peer(end);
    if (!before) end.qp->connect(peer.blob());
    ASSERT_NO_FATAL_FAILURE(other_peer.dial());
    other_peer.send_connect_message(other_peer.address().token);
    end.poll();
    if (before) end.qp->connect(peer.blob());
    const auto bytes = other_peer.take(sizeof(ConnectMessage));
    ASSERT_EQ(bytes.size(), sizeof(ConnectMessage));
    ConnectMessage answer;
    std::memcpy(&answer, bytes.data(), sizeof answer);
    EXPECT_EQ(answer.kind, ConnectKind::refused);
    EXPECT_EQ(end.qp->state(), QpState::rtr) << "its own peer may still come";
  }
}

TEST(TcpConnection, SilentConnectionsDoNotBlockOthers) {
  TcpEnd end(false, 4096, {.pending_max = 4});
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(std::make_unique<RawPeer>(end));
    ASSERT_NO_FATAL_FAILURE(silent.back()->dial());
    if (i % 2 == 0) silent.back()->send_all("Rdm", 3);
    end.poll();
  }
  RawPeer peer(end);
  ASSERT_NO_FATAL_FAILURE(peer.connect());
  EXPECT_EQ(silent.front()->take(1).size(), 0u) << "the oldest had to go";
}

TEST(TcpConnection, UnidentifiedConnectionsHaveATimeLimit) {
  TcpEnd end(false, 4096, {.connect_timeout_ms = 1});
  RawPeer other_peer(end);
  ASSERT_NO_FATAL_FAILURE(other_peer.dial());
  EXPECT_EQ(other_peer.take(1).size(), 0u);
}

TEST(TcpConnection, WaitingForAPeerHasATimeLimit) {
  TcpEnd passive(false, 4096, {.connect_timeout_ms = 1}), active(true);
  ASSERT_EQ(passive.qp->connect(active.qp->local_address()), "");
  ASSERT_TRUE(passive.until([&] { return settles(*passive.qp); }));
  EXPECT_NE(passive.qp->error().find("has not connected"), std::string::npos) << passive.qp->error();
}

TEST(TcpConnection, DiallingASilentEndpointHasATimeLimit) {
  TcpEnd passive, active(true, 4096, {.connect_timeout_ms = 1});
  // The passive side is not polled: only the kernel accepts the connection.
  ASSERT_EQ(active.qp->connect(passive.qp->local_address()), "");
  ASSERT_TRUE(active.until([&] { return settles(*active.qp); }));
  EXPECT_NE(active.qp->error().find("has not answered within 1 ms"), std::string::npos) << active.qp->error();
}

TEST(TcpConnection, AnAddressThatCannotBeListenedOnIsNamed) {
  std::string error;
  for (const char* host : {"192.0.2.1", "no address"}) {
    const auto device = open_tcp_device({.host = host}, &error);
    const auto cq = device->create_cq(16);
    EXPECT_EQ(device->create_qp(*cq, {.active = false}, &error), nullptr);
    EXPECT_NE(error.find(host), std::string::npos) << error;
    EXPECT_NE(device->create_qp(*cq, {.active = true}, &error), nullptr) << "the side that dials needs none";
  }
}

TEST(TcpConnection, BehindABalancerItDialsUntilItReachesItsServer) {
  TcpEnd right, wrong, active(true);
  int dials = 0;
  Relay relay([&] {
    const TcpEnd& next = dials++ % 2 == 0 ? wrong : right;
    tcp::Address address;
    EXPECT_EQ(tcp::decode(next.qp->local_address(), &address), "");
    return address.endpoint;
  });
  ASSERT_EQ(right.qp->connect(active.qp->local_address()), "");
  ASSERT_EQ(active.qp->connect(via(right, relay.endpoint())), "");
  ASSERT_TRUE(active.until([&] {
    relay.pump();
    right.poll();
    wrong.poll();
    return settles(*active.qp) && settles(*right.qp);
  }));
  EXPECT_EQ(active.qp->error(), "");
  EXPECT_EQ(active.qp->state(), QpState::rts);
  EXPECT_EQ(relay.connections(), 2);
}

TEST(TcpConnection, ABalancerThatNeverLeadsToTheServerFails) {
  TcpEnd right, wrong, active(true);
  tcp::Address address;
  ASSERT_EQ(tcp::decode(wrong.qp->local_address(), &address), "");
  ASSERT_EQ(active.qp->connect(via(right, address.endpoint)), "");
  ASSERT_TRUE(active.until([&] {
    wrong.poll();
    return settles(*active.qp);
  }));
  EXPECT_NE(active.qp->error().find("has reached the server"), std::string::npos) << active.qp->error();
}

/// Posts requests of all kinds in both directions. Returns the ids that each side has posted.
void post_everything(TcpEnd& from, const TcpEnd& to) {
  const Sge some = from.sge(0, 100), sink = from.sge(512, 300);
  from.post(request(Opcode::send, 1, {&some, 1}));
  from.post(request(Opcode::rdma_write, 2, {&some, 1}, to.region->addr() + 1024, to.region->rkey()));
  from.post(request(Opcode::rdma_read, 3, {&sink, 1}, to.region->addr() + 2048, to.region->rkey()));
  SendWr last = request(Opcode::send, 4, {&some, 1});
  last.fence = true;
  from.post(last);
}

/// Performs one run in which the connection is cut. The caller varies the number of bytes that the relay
/// forwards before the cut. Returns true when the run ended without a cut.
bool run_with_cut(bool from_dialer, std::size_t bytes) {
  TcpEnd active(true, 4096), passive(false, 4096);
  tcp::Address address;
  EXPECT_EQ(tcp::decode(passive.qp->local_address(), &address), "");
  Relay relay([&] { return address.endpoint; });
  relay.cut_after(from_dialer, bytes);
  const auto both_until = [&](const std::function<bool()>& done) {
    return wait_until([&] {
      relay.pump();
      active.poll();
      passive.poll();
      return done();
    });
  };
  for (TcpEnd* end : {&active, &passive}) {
    for (std::uint64_t i = 0; i < 4; ++i) end->receive(100 + i, 3072);
  }
  EXPECT_EQ(passive.qp->connect(active.qp->local_address()), "");
  EXPECT_EQ(active.qp->connect(via(passive, relay.endpoint())), "");
  // The passive side may not know that its welcome has been lost.
  EXPECT_TRUE(both_until([&] { return settles(*active.qp); }));
  if (active.qp->state() != QpState::rts) {
    EXPECT_NE(active.qp->error(), "");
    return false;
  }
  EXPECT_TRUE(both_until([&] { return settles(*passive.qp); }));
  post_everything(active, passive);
  if (passive.qp->state() == QpState::rts) post_everything(passive, active);
  const auto sends_settled = [](const TcpEnd& end) {
    std::size_t count = 0;
    for (const Wc& wc : end.completions) count += wc.wr_id < 100 ? 1 : 0;
    return count == 4;
  };
  const auto over = [](const TcpEnd& end) { return end.qp->state() == QpState::err; };
  EXPECT_TRUE(both_until([&] {
    return (sends_settled(active) && sends_settled(passive)) || (over(active) && over(passive));
  })) << "a request is never settled";
  const bool whole = !over(active) && !over(passive);
  for (TcpEnd* end : {&active, &passive}) {
    if (!whole) end->qp->to_error();
    end->poll();
    std::map<std::uint64_t, int> seen;
    bool failed = false;
    for (const Wc& wc : end->completions) {
      EXPECT_EQ(++seen[wc.wr_id], 1) << "twice: " << wc.wr_id;
      if (wc.wr_id >= 100) continue;
      EXPECT_FALSE(failed && wc.status == WcStatus::success) << "carried out behind one that was not";
      failed |= wc.status != WcStatus::success;
    }
    EXPECT_EQ(end->qp->error().find("protocol"), std::string::npos) << end->qp->error();
  }
  return whole;
}

TEST(TcpConnection, CutAtEachByteItSettlesEveryRequestOnce) {
  for (const bool from_dialer : {true, false}) {
    bool whole = false;
    for (std::size_t bytes = 0; !whole && bytes < 4096; ++bytes) {
      SCOPED_TRACE((from_dialer ? "active side cut after " : "passive side cut after ") +
                   std::to_string(bytes));
      whole = run_with_cut(from_dialer, bytes);
      if (HasFailure()) return;
    }
    EXPECT_TRUE(whole) << "the cut never came behind the last byte";
  }
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

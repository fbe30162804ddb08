// Tests queue pairs that the device ends by itself, and the event by which their owner notices.
#include <memory>
#include <vector>

#include "fabric/receive_queue.h"
#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

/// An idle queue pair with shared receives has nothing to flush, so the device reports only one event.
TEST(EndOfAQueuePair, IsNoticedByTheEventOfItsLastReceive) {
  Machine machine;
  Nic& nic = machine.add(capable());
  const auto device = open(nic);
  const auto cq = device->create_cq(64);
  std::string error;
  const auto receives = device->create_receive_queue(*cq, 16, &error);
  ASSERT_NE(receives, nullptr) << error;
  const auto client = device->create_qp(*cq, {.send_wr_max = 16, .recv_wr_max = 4}, &error);
  const auto server = device->create_qp(
      *cq, {.send_wr_max = 16, .recv_wr_max = 0, .active = false, .shared_receives = receives.get()}, &error);
  ASSERT_NE(server, nullptr) << error;
  ASSERT_EQ(server->connect(client->local_address()), "");
  ASSERT_EQ(client->connect(server->local_address()), "");
  fabric::Wc wc;
  while (client->state() != fabric::QpState::rts) cq->poll({&wc, 1});

  nic.break_queue_pair(server->qp_num());
  cq->acknowledge();
  std::size_t came = 0;
  for (int polls = 0; polls < 1000 && came == 0; ++polls) came = cq->poll({&wc, 1});
  ASSERT_EQ(came, 1u);
  EXPECT_EQ(wc.wr_id, fabric::kNoReceive);
  EXPECT_NE(server->error().find("nic0 has ended the queue pair and does not say why"), std::string::npos)
      << server->error();
}

/// Each queue pair is moved to ERR, which is one command. A device that is slow may be asked about its port
/// again, but not for each queue pair.
TEST(EndOfAQueuePair, DoesNotAskAboutThePortForEachOfMany) {
  constexpr std::size_t kMany = 40;
  Machine machine;
  Nic& nic = machine.add(named("nic0"));
  Nic& peer_nic = machine.add(named("nic1"));
  const auto device = open(nic), peer = open(peer_nic);
  std::vector<std::unique_ptr<Connected>> pairs;
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto& pair = pairs.emplace_back(std::make_unique<Connected>(*device, *peer));
    ASSERT_EQ(pair->error, "");
    const fabric::RecvWr receive{};
    ASSERT_EQ(pair->client->post_recv({&receive, 1}), 1u);
    nic.break_queue_pair(pair->client->qp_num());
  }
  const std::uint64_t before = nic.commands;
  for (const auto& pair : pairs) {
    fabric::Wc wc;
    ASSERT_EQ(pair->client_cq->poll({&wc, 1}), 1u);
  }
  EXPECT_LE(nic.commands - before, kMany + kMany / 2);
}

/// Queue pairs that end within a short time share one answer about the port. It is outdated when the port
/// reports that it has gone down.
TEST(EndOfAQueuePair, NamesAPortThatWentDownAMomentAfterItWasUp) {
  Machine machine;
  Nic& nic = machine.add(named("nic0"));
  Nic& peer_nic = machine.add(named("nic1"));
  const auto device = open(nic), peer = open(peer_nic);
  const Connected first(*device, *peer), second(*device, *peer);
  ASSERT_EQ(first.error + second.error, "");
  const auto end = [&nic](const Connected& pair) {
    const fabric::RecvWr receive{};
    EXPECT_EQ(pair.client->post_recv({&receive, 1}), 1u);
    nic.break_queue_pair(pair.client->qp_num());
    pair.client_cq->acknowledge();
    fabric::Wc wc;
    for (int polls = 0; polls < 1000 && pair.client->error().empty(); ++polls) pair.client_cq->poll({&wc, 1});
    return pair.client->error();
  };
  EXPECT_EQ(end(first),
            "nic0 has ended the queue pair and does not say why; the peer may have closed the connection");
  nic.set_port(IBV_PORT_DOWN);
  const std::string why = end(second);
  EXPECT_EQ(why.find("nic0 port 1 is DOWN"), 0u) << why;
}

Profile soft_roce(const std::string& name) {
  constexpr std::uint32_t kSoftRoceVendor = 0xffffff;
  Profile profile = named(name);
  profile.attributes.vendor_id = kSoftRoceVendor;
  return profile;
}

/// The peers have no receives, so the requests wait. The check must not send two commands for each of many
/// queue pairs in each second.
TEST(EndOfAQueuePair, OfSoftRoceThatWaitsWithATooSmallMtuNeedsFewCommands) {
  constexpr std::size_t kMany = 40;
  Machine machine;
  Nic& nic = machine.add(soft_roce("rxe0"));
  Nic& peer_nic = machine.add(named("nic1"));
  fabric::VerbsOptions waits;
  waits.rnr_retry = 7;  // without end
  const auto device = open(nic, waits), peer = open(peer_nic);
  std::vector<std::unique_ptr<Connected>> pairs;
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto& pair = pairs.emplace_back(std::make_unique<Connected>(*device, *peer));
    ASSERT_EQ(pair->error, "");
    const fabric::SendWr send{};
    ASSERT_EQ(pair->client->post_send({&send, 1}), 1u);
  }
  nic.port.active_mtu = IBV_MTU_1024;
  const std::uint64_t before = nic.commands;
  for (const auto& pair : pairs) {
    fabric::Wc wc;
    while (pair->client->error().empty()) {
      pair->client_cq->arm();  // This starts the watchdog's timer.
      pair->client_cq->acknowledge();
      pair->client_cq->poll({&wc, 1});
    }
    EXPECT_EQ(pair->client->error(),
              "rxe0 sends packets of up to 1024 bytes now, and this connection needs 4096 bytes: the MTU of "
              "its network interface has become smaller; a new connection uses the new MTU");
  }
  // One command asks each queue pair for its path MTU, and one ends it.
  EXPECT_LE(nic.commands - before, 2 * kMany + kMany / 2);
}

/// This driver gives no reason when it rejects a request of the peer, so the error says what may have
/// happened.
TEST(EndOfAQueuePair, OfSoftRoceNamesARejectedRequestAsAPossibleCause) {
  Machine machine;
  Nic& nic = machine.add(soft_roce("rxe0"));
  Nic& peer_nic = machine.add(named("nic1"));
  const auto device = open(nic), peer = open(peer_nic);
  const Connected pair(*device, *peer);
  ASSERT_EQ(pair.error, "");
  const fabric::RecvWr receive{};
  ASSERT_EQ(pair.client->post_recv({&receive, 1}), 1u);
  nic.break_queue_pair(pair.client->qp_num());
  pair.client_cq->acknowledge();
  fabric::Wc wc;
  for (int polls = 0; polls < 1000 && pair.client->error().empty(); ++polls) pair.client_cq->poll({&wc, 1});
  EXPECT_EQ(pair.client->error(),
            "rxe0 has ended the queue pair and does not say why; the peer may have closed the connection, or "
            "soft-RoCE has rejected a request of the peer, as when the network reorders packets and a READ "
            "arrives again after its memory was released");
}

}  // namespace
}  // namespace rdma_rpc::nic

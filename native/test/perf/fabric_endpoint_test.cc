// Tests the endpoint of `rdma-rpc perf` with features that some fabrics lack: shared receives, UC, UD,
// multicast and atomics. The tests use the simulated fabric, which has all of them. The tests also check that
// a feature which a fabric lacks is refused with its reason.
#include "perf/fabric_endpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fabric/shm/shm.h"
#include "fabric/sim/sim.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::perf {
namespace {

constexpr std::uint32_t kBytes = 64, kReceives = 8;
/// Offset from which messages are sent, and offset of the first receive.
constexpr std::uint64_t kOut = 0, kIn = 4096;

EndpointOptions options(bool active) {
  EndpointOptions made;
  made.active = active;
  made.send_wr_max = 16;
  made.recv_wr_max = kReceives;
  made.memory_bytes = 1 << 16;
  return made;
}

/// Two connected endpoints in one simulated world.
class Both {
 public:
  explicit Both(EndpointOptions wanted) : count_(wanted.queue_pairs) {
    for (auto* end : {&a, &b}) {
      wanted.active = end == &a;
      std::string error;
      *end = make_fabric_endpoint(world_.open_device(), wanted, &error);
      EXPECT_NE(*end, nullptr) << error;
    }
    for (std::uint32_t i = 0; i < count_; ++i) {
      const auto to_a = a->address(i), to_b = b->address(i);
      EXPECT_EQ(b->connect(i, to_a), "");
      EXPECT_EQ(a->connect(i, to_b), "");
    }
    EXPECT_EQ(a->reach(b->memory()), "");
    EXPECT_EQ(b->reach(a->memory()), "");
  }

  /// Polls until `count` completions have arrived, for a limited time.
  static std::vector<Completion> take(Endpoint& end, Endpoint& other, std::size_t count) {
    std::vector<Completion> all;
    std::array<Completion, 8> found{};
    for (int i = 0; i < 10'000 && all.size() < count; ++i) {
      const std::size_t some = end.poll(found);
      all.insert(all.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(some));
      if (some == 0) other.poll({});
    }
    EXPECT_EQ(all.size(), count);
    return all;
  }

 private:
  fabric::SimWorld world_{fabric::SimOptions{}};
  const std::uint32_t count_;

 public:
  std::unique_ptr<Endpoint> a, b;
};

Request message(Verb verb, std::uint64_t id, std::uint32_t length) {
  return {.id = id, .verb = verb, .signaled = true, .length = length, .from = kOut};
}

TEST(FabricEndpoint, SharedReceivesTellOnWhichQueuePairAMessageCame) {
  EndpointOptions wanted = options(true);
  wanted.queue_pairs = 3;
  wanted.shared_receives = true;
  Both ends(wanted);
  // All receives are posted for the first queue pair, but messages also arrive on the others.
  for (std::uint64_t i = 0; i < 6; ++i)
    ASSERT_TRUE(ends.b->post_receive(0, 100 + i, kIn + i * kBytes, kBytes));
  std::vector<std::uint32_t> wanted_order;
  for (std::uint32_t i = 0; i < 6; ++i) {
    const Request request = message(Verb::send, i, kBytes);
    ASSERT_EQ(ends.a->post(i % 3, {&request, 1}), 1u);
    wanted_order.push_back(i % 3);
    const auto received = Both::take(*ends.b, *ends.a, 1);
    ASSERT_EQ(received.size(), 1u);
    EXPECT_TRUE(received[0].received);
    EXPECT_EQ(received[0].id, 100u + i);
    EXPECT_EQ(received[0].queue_pair, i % 3);
    EXPECT_EQ(received[0].bytes, kBytes);
  }
}

class Unreliable : public testing::TestWithParam<Transport> {};

TEST_P(Unreliable, CarriesSendsAndSaysThatItMayLoseThem) {
  EndpointOptions wanted = options(true);
  wanted.transport = GetParam();
  Both ends(wanted);
  const Limits& limits = ends.a->limits();
  EXPECT_FALSE(limits.reliable);
  EXPECT_FALSE(limits.atomic);
  EXPECT_EQ(limits.header_bytes, GetParam() == Transport::ud ? 40u : 0u);
  ASSERT_TRUE(ends.b->post_receive(0, 7, kIn, kBytes + limits.header_bytes));
  std::memset(ends.a->data() + kOut, 0x5a, kBytes);
  const Request request = message(Verb::send, 1, kBytes);
  ASSERT_EQ(ends.a->post(0, {&request, 1}), 1u);
  const auto received = Both::take(*ends.b, *ends.a, 1);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].id, 7u);
  EXPECT_EQ(received[0].bytes, kBytes);
  EXPECT_EQ(std::memcmp(ends.b->data() + kIn + limits.header_bytes, ends.a->data() + kOut, kBytes), 0);
}
INSTANTIATE_TEST_SUITE_P(All, Unreliable, testing::Values(Transport::uc, Transport::ud),
                         [](const auto& each) { return each.param == Transport::uc ? "uc" : "ud"; });

TEST(FabricEndpoint, DatagramsToAGroupReachThePeerAndTheirSenderIsTold) {
  EndpointOptions wanted = options(true);
  wanted.transport = Transport::ud;
  wanted.multicast = true;
  Both ends(wanted);
  for (auto* end : {&ends.a, &ends.b}) ASSERT_TRUE((*end)->post_receive(0, 7, kIn, kBytes + 40));
  const Request request = message(Verb::send, 1, kBytes);
  ASSERT_EQ(ends.a->post(0, {&request, 1}), 1u);
  const auto received = Both::take(*ends.b, *ends.a, 1);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_TRUE(received[0].received);
  EXPECT_FALSE(received[0].looped_back);
  // The sender is also a member of the group, and must not count its own message as one of the peer.
  for (const Completion& own : Both::take(*ends.a, *ends.b, 2)) EXPECT_EQ(own.looped_back, own.received);
}

TEST(FabricEndpoint, AtomicsAddAndSwapAtThePeer) {
  Both ends(options(true));
  EXPECT_TRUE(ends.a->limits().atomic);
  constexpr std::uint64_t kCounter = 512;
  std::uint64_t value = 41;
  std::memcpy(ends.b->data() + kCounter, &value, sizeof value);
  Request add = message(Verb::fetch_add, 1, 8);
  add.to = kCounter;
  add.operand = 2;
  ASSERT_EQ(ends.a->post(0, {&add, 1}), 1u);
  EXPECT_EQ(Both::take(*ends.a, *ends.b, 1)[0].failure, nullptr);
  std::memcpy(&value, ends.a->data() + kOut, sizeof value);
  EXPECT_EQ(value, 41u);
  Request swap = message(Verb::compare_swap, 2, 8);
  swap.to = kCounter;
  swap.operand = 43;
  swap.swap = 7;
  ASSERT_EQ(ends.a->post(0, {&swap, 1}), 1u);
  EXPECT_EQ(Both::take(*ends.a, *ends.b, 1)[0].failure, nullptr);
  std::memcpy(&value, ends.b->data() + kCounter, sizeof value);
  EXPECT_EQ(value, 7u);
}

TEST(FabricEndpoint, WhatAFabricLacksIsRefusedWithTheReason) {
  const auto refused = [](const std::string& fabric, auto change) {
    EndpointOptions wanted = options(true);
    change(wanted);
    std::string error;
    std::shared_ptr<fabric::Device> device =
        fabric == "shm" ? fabric::open_shm_device({}, &error) : fabric::open_tcp_device({}, &error);
    EXPECT_NE(device, nullptr) << error;
    EXPECT_EQ(make_fabric_endpoint(device, wanted, &error), nullptr);
    return error;
  };
  for (const std::string fabric : {"shm", "tcp"}) {
    const auto of = [&](const char* what) { return fabric + " has no " + what + ": "; };
    EXPECT_EQ(
        refused(fabric, [](auto& wanted) { wanted.transport = Transport::uc; }).find(of("UC queue pairs")),
        0u);
    EXPECT_EQ(
        refused(fabric, [](auto& wanted) { wanted.transport = Transport::ud; }).find(of("UD queue pairs")),
        0u);
    EXPECT_EQ(refused(fabric, [](auto& wanted) { wanted.multicast = true; }).find(of("multicast")), 0u);
    EXPECT_EQ(refused(fabric, [](auto& wanted) { wanted.shared_receives = true; })
                  .find(of("shared receive queues")),
              0u);
  }
}

TEST(FabricEndpoint, AnAddressThatIsNoneOfDatagramsIsRefused) {
  fabric::SimWorld world{fabric::SimOptions{}};
  EndpointOptions wanted = options(true);
  wanted.transport = Transport::ud;
  std::string error;
  const auto end = make_fabric_endpoint(world.open_device(), wanted, &error);
  ASSERT_NE(end, nullptr) << error;
  auto address = end->address(0);
  address[0] ^= std::byte{1};
  EXPECT_NE(end->connect(0, address), "");
  EXPECT_NE(end->connect(0, std::span(address).first(5)), "");
}

}  // namespace
}  // namespace rdma_rpc::perf

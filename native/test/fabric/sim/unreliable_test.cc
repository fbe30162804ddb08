// Tests UC and UD on a network that loses, duplicates and delays packets, by seed. Only outcomes that the
// transport allows may happen, and each of them must happen for some seed.
#include <algorithm>
#include <map>

#include "fabric/sim/pair.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint32_t kQkey = 5, kSlots = 64;
constexpr std::uint64_t kMtu = 1024;

SimOptions network(std::uint64_t seed, std::uint32_t loss, std::uint32_t twice, std::uint32_t late) {
  SimOptions options;
  options.mode = SimMode::scheduled;
  options.seed = seed;
  options.loss_ppm = loss;
  options.duplicate_ppm = twice;
  options.reorder_ppm = late;
  options.capabilities.max_datagram_bytes = kMtu;
  return options;
}

/// Two devices with a queue pair each, of any type, and memory for messages that contain their number in each
/// word.
struct Ends {
  explicit Ends(const SimOptions& options, QpType type, std::size_t bytes) : world(options), each(bytes) {
    for (End* end : {&client, &server}) {
      end->device = world.open_device();
      end->cq = end->device->create_cq(4096);
      end->host = end->device->alloc_memory(kSlots * (each + kGrhBytes), "test");
      end->region = end->device->reg_mr(end->host->data(), end->host->size(), kAllRights, nullptr);
      end->qp = end->device->create_qp(
          *end->cq, {.type = type, .qkey = kQkey, .send_wr_max = kSlots, .recv_wr_max = kSlots}, nullptr);
    }
    const bool ud = type == QpType::ud;
    const auto to_client = client.qp->local_address(), to_server = server.qp->local_address();
    EXPECT_EQ(client.qp->connect(ud ? std::span<const std::byte>{} : to_server), "");
    EXPECT_EQ(server.qp->connect(ud ? std::span<const std::byte>{} : to_client), "");
    if (ud) ah = client.device->create_ah({.gid = server.device->gid()}, nullptr);
  }
  Sge sge(const SimPair::End& end, std::uint64_t slot, std::uint64_t bytes) const {
    return {end.region->addr() + slot * (each + kGrhBytes), static_cast<std::uint32_t>(bytes),
            end.region->lkey()};
  }
  void receive(std::uint64_t id) {
    const RecvWr wr{id, sge(server, id % kSlots, each + kGrhBytes)};
    ASSERT_EQ(server.qp->post_recv({&wr, 1}), 1u);
  }
  void send(std::uint64_t id, Opcode opcode = Opcode::send) {
    const Sge from = sge(client, id % kSlots, each);
    std::fill_n(reinterpret_cast<std::uint64_t*>(from.addr), each / 8, id);
    SendWr wr = request(opcode, id, {&from, 1}, server.region->addr(), server.region->rkey());
    if (ah != nullptr) wr.ud = {ah.get(), server.qp->qp_num(), kQkey};
    ASSERT_EQ(client.qp->post_send({&wr, 1}), 1u);
  }
  /// Returns the number that every word of the message contains. Fails when the words differ.
  std::uint64_t number_in(const Wc& wc) const {
    const auto* at = reinterpret_cast<const std::uint64_t*>(sge(server, wc.wr_id % kSlots, 0).addr +
                                                            (wc.has_grh ? kGrhBytes : 0));
    EXPECT_TRUE(std::all_of(at, at + each / 8, [at](std::uint64_t word) { return word == *at; }))
        << "parts of two messages";
    return *at;
  }
  /// Sends `count` messages, with a receive for each that may arrive. Returns the numbers of the messages in
  /// the order of their arrival.
  std::vector<std::uint64_t> run(std::uint64_t count) {
    std::vector<std::uint64_t> came;
    std::uint64_t posted = 0, sent = 0;
    for (; posted < kSlots; ++posted) receive(posted);
    while (sent < count) {
      for (std::uint64_t i = 0; i < 8 && sent < count; ++i) send(sent++);
      world.run_until_idle();
      std::uint64_t completed = 0;
      for (const Wc& wc : SimPair::poll(client)) completed += wc.status == WcStatus::success ? 1 : 0;
      EXPECT_EQ(completed, std::min<std::uint64_t>(8, count)) << "a sender is told of nothing";
      for (const Wc& wc : SimPair::poll(server)) {
        EXPECT_EQ(wc.status, WcStatus::success);
        came.push_back(number_in(wc));
        receive(posted++);
      }
    }
    return came;
  }

  using End = SimPair::End;
  SimWorld world;
  const std::uint64_t each;
  std::unique_ptr<AddressHandle> ah;
  End client, server;
};

TEST(SimUnreliable, NothingIsLostOnAGoodNetwork) {
  for (const QpType type : {QpType::uc, QpType::ud}) {
    Ends ends(network(1, 0, 0, 0), type, kMtu);
    const auto came = ends.run(400);
    ASSERT_EQ(came.size(), 400u);
    EXPECT_TRUE(std::is_sorted(came.begin(), came.end()));
  }
}

TEST(SimUnreliable, TheSeedDecidesWhatIsLost) {
  for (const QpType type : {QpType::uc, QpType::ud}) {
    const auto came = [type](std::uint64_t seed) {
      return Ends(network(seed, 100'000, 0, 0), type, kMtu).run(800);
    };
    const auto first = came(1);
    EXPECT_GT(first.size(), 650u);
    EXPECT_LT(first.size(), 780u);
    EXPECT_EQ(first, came(1));
    EXPECT_NE(first, came(2));
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  }
}

TEST(SimUnreliable, DatagramsAreDoubledAndOvertaken) {
  Ends ends(network(3, 50'000, 50'000, 200'000), QpType::ud, 64);
  const auto came = ends.run(800);
  std::map<std::uint64_t, int> times;
  for (const std::uint64_t number : came) ++times[number];
  EXPECT_LT(times.size(), 800u) << "some are lost";
  EXPECT_TRUE(std::any_of(times.begin(), times.end(), [](const auto& each) { return each.second == 2; }));
  EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](const auto& each) { return each.second <= 2; }));
  EXPECT_FALSE(std::is_sorted(came.begin(), came.end()));
  const SimCounters counters = ends.world.counters();
  EXPECT_GT(counters.packets_lost, 0u);
  EXPECT_GT(counters.packets_doubled, 0u);
}

TEST(SimUnreliable, RcShowsNothingOfTheNetwork) {
  Ends ends(network(4, 200'000, 200'000, 200'000), QpType::rc, 3 * kMtu);
  const auto came = ends.run(200);
  ASSERT_EQ(came.size(), 200u);
  EXPECT_TRUE(std::is_sorted(came.begin(), came.end()));
}

TEST(SimUnreliable, AUcMessageWithoutOneOfItsPacketsIsDroppedWhole) {
  for (std::uint64_t missing = 1; missing <= 3; ++missing) {
    SCOPED_TRACE(missing);
    Ends ends(network(1, 0, 0, 0), QpType::uc, 3 * kMtu);
    ends.receive(0);
    std::memset(ends.server.host->data(), 0xee, ends.server.host->size());
    ends.world.lose_packet(ends.client.qp->qp_num(), missing);
    ends.send(1);
    ends.world.run_until_idle();
    EXPECT_EQ(SimPair::poll(ends.client).size(), 1u);
    EXPECT_TRUE(SimPair::poll(ends.server).empty());
    EXPECT_EQ(ends.server.host->data()[0], std::byte{0xee}) << "the receive is untouched";
    ends.send(2);
    ends.world.run_until_idle();
    const auto done = SimPair::poll(ends.server);
    ASSERT_EQ(done.size(), 1u) << "the next message takes that receive";
    EXPECT_EQ(ends.number_in(done[0]), 2u);
  }
}

TEST(SimUnreliable, AUcWriteMayLeaveAPartAndNoImmediate) {
  Ends ends(network(1, 0, 0, 0), QpType::uc, 3 * kMtu);
  ends.receive(1);
  ends.world.lose_packet(ends.client.qp->qp_num(), 2);
  ends.send(9, Opcode::rdma_write_with_imm);
  ends.world.run_until_idle();
  EXPECT_EQ(SimPair::poll(ends.client).size(), 1u);
  EXPECT_TRUE(SimPair::poll(ends.server).empty());
  const auto* words = reinterpret_cast<const std::uint64_t*>(ends.server.host->data());
  EXPECT_EQ(words[0], 9u) << "the first packet has been written";
  EXPECT_EQ(words[kMtu / 8], 0u);
  EXPECT_EQ(words[2 * kMtu / 8], 0u) << "what follows a gap is not";
}

/// number_in() checks that no message consists of parts of two messages.
TEST(SimUnreliable, UcMessagesAreWholeWhateverTheNetworkDoes) {
  std::size_t came = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Ends ends(network(seed, 30'000, 30'000, 60'000), QpType::uc, 4 * kMtu);
    came += ends.run(80).size();
  }
  EXPECT_GT(came, 40u * 20);
  EXPECT_LT(came, 40u * 75);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

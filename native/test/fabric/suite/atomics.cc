// Tests compare-and-swap and fetch-and-add: the values before and after, refusals, windows, order, and
// atomicity of remote atomics among each other.
#include <cstdint>

#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

constexpr std::uint32_t kAtomic = access_local_write | access_remote_atomic;
constexpr std::uint32_t kSink = access_local_write | access_remote_write;

std::uint64_t word_at(const Memory& memory, std::uint64_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, memory.data() + offset, sizeof word);
  return word;
}

void set_word(const Memory& memory, std::uint64_t offset, std::uint64_t word) {
  std::memcpy(memory.data() + offset, &word, sizeof word);
}

SendWr atomic(Opcode opcode, std::uint64_t wr_id, std::span<const Sge> sink, std::uint64_t addr,
              std::uint32_t rkey, std::uint64_t compare_add, std::uint64_t swap = 0) {
  SendWr wr = request(opcode, wr_id, sink, addr, rkey);
  wr.atomic = {compare_add, swap};
  return wr;
}

TEST_P(FabricSuite, FetchAndAddReturnsTheValueBefore) {
  RDMA_RPC_NEEDS(atomics);
  connect();
  Memory& sink = memory(client_, 64, kSink);
  Memory& target = memory(server_, 64, kAtomic);
  target.paint(0xee);
  set_word(target, 8, 40);
  const Sge sge = sink.sge(16, 8);
  for (const std::uint64_t add : {std::uint64_t{2}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    const std::uint64_t before = word_at(target, 8);
    sink.paint(0xdd);
    post(client_, atomic(Opcode::atomic_fetch_and_add, add, {&sge, 1}, target.addr(8), target.rkey(), add));
    const Wc wc = expect(client_, add);
    EXPECT_EQ(wc.opcode, Opcode::atomic_fetch_and_add);
    EXPECT_EQ(wc.bytes, 8u);
    EXPECT_EQ(word_at(sink, 16), before);
    EXPECT_EQ(word_at(target, 8), before + add);
    EXPECT_TRUE(sink.all(0, 16, 0xdd) && sink.all(24, 40, 0xdd)) << "bytes beside the sink changed";
    EXPECT_TRUE(target.all(0, 8, 0xee) && target.all(16, 48, 0xee)) << "bytes beside the word changed";
  }
  expect_quiet();
}

TEST_P(FabricSuite, CompareAndSwapStoresOnlyWhereItFindsTheValue) {
  RDMA_RPC_NEEDS(atomics);
  connect();
  for (Side* from : {&client_, &server_}) {
    Memory& sink = memory(*from, 8, kSink);
    Memory& target = memory(peer_of(*from), 8, kAtomic);
    set_word(target, 0, 7);
    const Sge sge = sink.sge(0, 8);
    const auto swap = [&](std::uint64_t compare, std::uint64_t value) {
      post(*from,
           atomic(Opcode::atomic_cmp_and_swp, 1, {&sge, 1}, target.addr(), target.rkey(), compare, value));
      expect(*from, 1);
      return word_at(sink, 0);
    };
    EXPECT_EQ(swap(6, 100), 7u);
    EXPECT_EQ(word_at(target, 0), 7u) << "it was not 6";
    EXPECT_EQ(swap(7, 8), 7u);
    EXPECT_EQ(word_at(target, 0), 8u);
    EXPECT_EQ(swap(8 + (std::uint64_t{1} << 40), 9), 8u);
    EXPECT_EQ(word_at(target, 0), 8u) << "all 8 bytes are compared";
  }
  expect_quiet();
}

TEST_P(FabricSuite, AnAtomicIsRefusedAsAReadIs) {
  RDMA_RPC_NEEDS(atomics);
  struct Row {
    const char* what;
    std::uint32_t rights;
    std::uint64_t offset;
    std::uint32_t wrong_key;
  };
  const Row rows[] = {
      {"another key", kAtomic, 0, 1},
      {"only READ and WRITE", kAllRights, 0, 0},
      {"past the end", kAtomic, 64, 0},
      {"before the beginning", kAtomic, ~std::uint64_t{7}, 0},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    recreate({.send_wr_max = 16, .recv_wr_max = 16});
    connect();
    Memory& sink = memory(client_, 8, kSink);
    Memory& target = memory(server_, 64, row.rights);
    target.paint(0xee);
    sink.paint(0xdd);
    const Sge sge = sink.sge(0, 8);
    post(client_, atomic(Opcode::atomic_fetch_and_add, 1, {&sge, 1}, target.addr() + row.offset,
                         target.rkey() ^ row.wrong_key, 1));
    EXPECT_TRUE(refused_with(expect_error(client_, 1), WcStatus::rem_access_err));
    expect_both_dead();
    EXPECT_TRUE(target.untouched(0xee));
    EXPECT_TRUE(sink.untouched(0xdd));
  }
}

TEST_P(FabricSuite, AMalformedAtomicFailsHere) {
  RDMA_RPC_NEEDS(atomics);
  for (const std::uint32_t wrong : {0u, 1u, 2u, 3u}) {
    SCOPED_TRACE(wrong);
    recreate({.send_wr_max = 16, .recv_wr_max = 16});
    connect();
    Memory& sink = memory(client_, 64, kSink);
    Memory& target = memory(server_, 64, kAtomic);
    target.paint(0xee);
    const Sge one = sink.sge(0, wrong == 0 ? 4 : 8), halves[] = {sink.sge(0, 4), sink.sge(8, 4)};
    SendWr wr =
        atomic(Opcode::atomic_fetch_and_add, 1, {&one, 1}, target.addr(wrong == 1 ? 4 : 0), target.rkey(), 1);
    if (wrong == 2) wr.sges = halves;
    wr.inline_data = wrong == 3;
    post(client_, wr);
    EXPECT_EQ(expect_error(client_, 1).status, WcStatus::loc_qp_op_err);
    EXPECT_EQ(client_.qp->state(), QpState::err);
    settle();
    EXPECT_TRUE(target.untouched(0xee));
    server_.completions.clear();
  }
}

TEST_P(FabricSuite, TheSinkOfAnAtomicIsChecked) {
  RDMA_RPC_NEEDS(atomics);
  connect();
  Memory& sink = memory(client_, 8, access_remote_read | access_local_write);
  Memory& target = memory(server_, 8, kAtomic);
  target.paint(0xee);
  const Sge foreign{sink.addr(), 8, sink.region->lkey() ^ 1u};
  post(client_, atomic(Opcode::atomic_fetch_and_add, 1, {&foreign, 1}, target.addr(), target.rkey(), 1));
  expect_error(client_, 1);
  EXPECT_EQ(client_.qp->state(), QpState::err);
}

TEST_P(FabricSuite, AWindowGivesTheRightToAtomicsAndTakesItBack) {
  RDMA_RPC_NEEDS(atomics);
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& sink = memory(client_, 8, kSink);
  Memory& target = memory(server_, 64, kAtomic | access_mw_bind);
  MemoryWindow& window = this->window(server_);
  bind(server_, window, target, 0, 64, access_remote_atomic);
  const Sge sge = sink.sge(0, 8);
  post(client_, atomic(Opcode::atomic_fetch_and_add, 1, {&sge, 1}, target.addr(8), window.rkey(), 5));
  expect(client_, 1);
  EXPECT_EQ(word_at(target, 8), 5u);
  SendWr end = request(Opcode::local_inv, 2, {});
  end.invalidate_rkey = window.rkey();
  post(server_, end);
  expect(server_, 2);
  post(client_, atomic(Opcode::atomic_fetch_and_add, 3, {&sge, 1}, target.addr(8), window.rkey(), 5));
  EXPECT_TRUE(refused_with(expect_error(client_, 3), WcStatus::rem_access_err));
  EXPECT_EQ(word_at(target, 8), 5u);
}

/// One post contains more atomics than may be outstanding.
TEST_P(FabricSuite, ManyAtomicsOfTwoQueuePairsLoseNoUpdate) {
  RDMA_RPC_NEEDS(atomics);
  constexpr std::uint64_t kCount = 48;
  recreate({.send_wr_max = 64, .recv_wr_max = 64});
  connect();
  const Pair second = another_pair();
  Memory& sinks = memory(client_, 8 * kCount, kSink);
  Memory& target = memory(server_, 64, kAtomic);
  std::vector<SendWr> batch;
  std::vector<Sge> sges(kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    sges[i] = sinks.sge(8 * i, 8);
    batch.push_back(
        atomic(Opcode::atomic_fetch_and_add, i, {&sges[i], 1}, target.addr(16), target.rkey(), 1));
  }
  std::size_t other = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    QueuePair& qp = i % 4 == 0 && other < 16 ? (++other, *second.client) : *client_.qp;
    ASSERT_EQ(qp.post_send({&batch[i], 1}), 1u);
  }
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) EXPECT_EQ(next(client_).status, WcStatus::success);
  for (std::uint64_t i = 0; i < kCount; ++i) sum += word_at(sinks, 8 * i);
  EXPECT_EQ(word_at(target, 16), kCount);
  EXPECT_EQ(sum, kCount * (kCount - 1) / 2) << "each has seen another value";
  expect_quiet();
}

TEST_P(FabricSuite, AtomicsAndReadsKeepTheirOrder) {
  RDMA_RPC_NEEDS(atomics);
  constexpr std::uint64_t kRounds = 12;
  recreate({.send_wr_max = 64, .recv_wr_max = 64});
  connect();
  Memory& sinks = memory(client_, 8 * 2 * kRounds, kSink);
  Memory& target = memory(server_, 8, kAtomic | access_remote_read);
  std::vector<Sge> sges(2 * kRounds);
  for (std::uint64_t i = 0; i < 2 * kRounds; ++i) {
    sges[i] = sinks.sge(8 * i, 8);
    const std::span<const Sge> sink(&sges[i], 1);
    post(client_, i % 2 == 0 ? atomic(Opcode::atomic_fetch_and_add, i, sink, target.addr(), target.rkey(), 1)
                             : request(Opcode::rdma_read, i, sink, target.addr(), target.rkey()));
  }
  for (std::uint64_t i = 0; i < 2 * kRounds; ++i) expect(client_, i);
  for (std::uint64_t i = 0; i < 2 * kRounds; ++i) EXPECT_EQ(word_at(sinks, 8 * i), (i + 1) / 2) << i;
}

TEST_P(FabricSuite, AFencedSendComesAfterTheAtomicBeforeIt) {
  RDMA_RPC_NEEDS(atomics);
  connect();
  Memory& sink = memory(client_, 8, kSink);
  Memory& target = memory(server_, 8, kAtomic);
  const Sge sge = sink.sge(0, 8);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    post_recv(server_, round, {});
    SendWr batch[] = {atomic(Opcode::atomic_fetch_and_add, 1, {&sge, 1}, target.addr(), target.rkey(), 1),
                      request(Opcode::send, 2, {})};
    batch[1].fence = true;
    ASSERT_EQ(client_.qp->post_send(batch), 2u);
    expect(server_, round);
    EXPECT_EQ(word_at(target, 0), round);
    expect(client_, 1);
    expect(client_, 2);
  }
}

TEST_P(FabricSuite, ARegionForAtomicsNeedsLocalWriteAndADeviceThatHasThem) {
  std::vector<std::byte> bytes(4096);
  std::string error;
  EXPECT_EQ(client_.device->reg_mr(bytes.data(), bytes.size(), access_remote_atomic, &error), nullptr);
  EXPECT_NE(error.find(caps().atomics ? "local write" : "atomics"), std::string::npos) << error;
}

}  // namespace rdma_rpc::fabric::test

// Each test states one false value that a peer can write in the words that it shares with us, and checks the
// consequence.
#include <algorithm>
#include <bit>

#include "fabric/shm/hostile.h"

namespace rdma_rpc::fabric::test {
namespace {

/// Two connected ends in this process, and the raw bytes of the first one's queue pair.
struct Raided {
  Raided() {
    EXPECT_EQ(victim.qp->connect(hostile.qp->local_address()), "");
    EXPECT_EQ(hostile.qp->connect(victim.qp->local_address()), "");
    EXPECT_TRUE(hostile.bind_all(access_remote_read | access_remote_write));
  }
  const ShmOptions options{.any_memory = false};
  ShmEnd victim{options}, hostile{options};
};

TEST(ShmHostile, ABadCellEndsTheQueuePairAndNothingElse) {
  struct Row {
    const char* what;
    shm::CellHeader header;
    std::uint32_t data[2];
    WcStatus status;
  };
  using Kind = shm::CellKind;
  const Row rows[] = {
      {"no kind", {1, 8, Kind{0}, false}, {}, WcStatus::general_err},
      {"unknown kind", {1, 8, Kind{5}, false}, {}, WcStatus::general_err},
      {"another unknown kind", {1, 8, Kind{127}, true}, {}, WcStatus::general_err},
      {"more than the cells of a message hold",
       {1, shm::kInlineMax + 1, Kind::send, false},
       {},
       WcStatus::general_err},
      {"as much as can be said", {1, 0xff, Kind::send, false}, {}, WcStatus::general_err},
      {"an immediate without its length", {1, 8, Kind::write_with_imm, false}, {}, WcStatus::general_err},
      {"placed past its receive",
       {1, 0, Kind::send, true},
       {ShmEnd::kSlotBytes + 1, 0},
       WcStatus::loc_len_err},
      {"placed without end", {1, 0, Kind::send, true}, {~0u, 0}, WcStatus::loc_len_err},
      {"no key to invalidate", {1, 8, Kind::send_with_inv, false}, {0, 0}, WcStatus::rem_inv_req_err},
      {"a key that never was",
       {1, 8, Kind::send_with_inv, false},
       {0xdeadbeef, 0},
       WcStatus::rem_inv_req_err},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Raided pair;
    std::memset(pair.victim.slab->data(), 0x77, pair.victim.slab->size());
    const RawSegment ring(*pair.victim.qp);
    std::memcpy(ring.cell(0).data, row.data, sizeof row.data);
    ring.cell(0).header.store(shm::pack(row.header));
    const Wc wc = pair.victim.next();
    EXPECT_EQ(wc.wr_id, 1000u);
    EXPECT_EQ(wc.status, row.status) << to_string(wc.status);
    for (std::uint32_t i = 1; i < ShmEnd::kReceives; ++i) {
      EXPECT_EQ(pair.victim.next().status, WcStatus::wr_flush_err);
    }
    EXPECT_EQ(pair.victim.qp->state(), QpState::err);
    EXPECT_TRUE(std::all_of(pair.victim.slab->data(), pair.victim.slab->data() + pair.victim.slab->size(),
                            [](std::byte b) { return b == std::byte{0x77}; }));
  }
}

TEST(ShmHostile, AMessageBeyondTheReceivesIsRefused) {
  Raided pair;
  const RawSegment ring(*pair.victim.qp);
  for (std::uint32_t i = 0; i <= ShmEnd::kReceives; ++i) {
    ring.cell(i).header.store(shm::pack({i + 1, 8, shm::CellKind::send, false}));
  }
  for (std::uint32_t i = 0; i < ShmEnd::kReceives; ++i) {
    EXPECT_EQ(pair.victim.next().wr_id, 1000 + i);
  }
  Wc wc;
  EXPECT_EQ(pair.victim.cq->poll({&wc, 1}), 0u);
  EXPECT_EQ(pair.victim.qp->state(), QpState::err);
}

TEST(ShmHostile, AForgedTableGivesNoAccessOutsideItsMemory) {
  struct Row {
    const char* what;
    std::function<void(shm::DeviceSegment&, shm::TableKey&, std::uint64_t* addr)> change;
    bool allowed;
  };
  constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  const Row rows[] = {
      {"nothing changed", [](auto&, auto&, auto*) {}, true},
      {"starts a byte early", [](auto&, auto& key, auto* addr) { key.addr.store(*addr -= 1); }, false},
      {"ends late",
       [](auto&, auto& key, auto* addr) {
         key.length.store(kEnd);
         *addr += ShmEnd::kMemoryBytes - 4095;
       },
       false},
      {"wraps past the end of the address space",
       [](auto&, auto& key, auto* addr) {
         key.addr.store(*addr = kEnd - 2047);
         key.length.store(kEnd);
       },
       false},
      {"in no slot", [](auto&, auto& key, auto*) { key.memory.store(shm::kMemoriesMax); }, false},
      {"in an empty slot", [](auto&, auto& key, auto*) { key.memory.store(7); }, false},
      {"by address, which is not allowed here",
       [](auto&, auto& key, auto*) { key.memory.store(shm::kNoMemory); }, false},
      {"of another size", [](auto& tables, auto&, auto*) { tables.memories[1].bytes.fetch_add(4096); },
       false},
      {"of no size", [](auto& tables, auto&, auto*) { tables.memories[1].bytes.store(0); }, false},
      {"behind no descriptor", [](auto& tables, auto&, auto*) { tables.memories[1].fd.store(987654); },
       false},
      {"for another queue pair", [](auto&, auto& key, auto*) { key.qp_num.fetch_add(1); }, false},
      {"without the right", [](auto&, auto& key, auto*) { key.access.store(access_remote_write); }, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Raided pair;
    const std::uint32_t rkey = pair.hostile.window->rkey();
    auto& tables = static_cast<shm::Device&>(*pair.hostile.device).shared();
    std::uint64_t addr = pair.hostile.region->addr();
    row.change(tables, tables.keys[rkey >> shm::kKeyGenerationBits], &addr);
    std::memset(pair.victim.memory->data(), 0x77, ShmEnd::kMemoryBytes);
    const Sge sge = pair.victim.sge(0, 4096);
    ASSERT_TRUE(pair.victim.post(Opcode::rdma_read, 1, {&sge, 1}, addr, rkey));
    const Wc wc = pair.victim.next();
    EXPECT_EQ(wc.status, row.allowed ? WcStatus::success : WcStatus::rem_access_err) << to_string(wc.status);
    EXPECT_EQ(pair.victim.memory->data()[0] != std::byte{0x77}, row.allowed);
  }
}

TEST(ShmHostile, AForgedReceiveTakesNothing) {
  for (const bool wraps : {false, true}) {
    Raided pair;
    const RawSegment theirs(*pair.hostile.qp);
    shm::PostedReceive& receive = theirs.receive(0);
    receive.addr.store(wraps ? ~std::uint64_t{0} - 100 : receive.addr.load() + ShmEnd::kMemoryBytes);
    const Sge sge = pair.victim.sge(0, 4096);
    ASSERT_TRUE(pair.victim.post(Opcode::send, 1, {&sge, 1}));
    EXPECT_EQ(pair.victim.next().status, WcStatus::rem_inv_req_err);
  }
}

TEST(ShmHostile, APostedCountBeyondTheRingCountsAsNone) {
  Raided pair;
  RawSegment(*pair.hostile.qp).header().posted.fetch_add(1000);
  const Sge sge = pair.victim.sge(0, 8);
  ASSERT_TRUE(pair.victim.post(Opcode::send, 1, {&sge, 1}));
  EXPECT_EQ(pair.victim.next().status, WcStatus::rnr_retry_exc_err);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

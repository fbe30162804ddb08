// Garbage in every word that a peer can write, and in every table that it shows us: only its own queue pair
// may suffer. Seeded; a failure prints the seed. Run it under ASan and UBSan too.
#include <algorithm>
#include <bit>
#include <random>

#include "fabric/shm/device.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/segment.h"
#include "fabric/shm_peers.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint32_t kRounds = 400;
constexpr int kSteps = 120;

/// A queue pair's segment, written from outside.
class RawSegment {
 public:
  explicit RawSegment(const QueuePair& qp) {
    shm::AddressBlob blob;
    const auto bytes = qp.local_address();
    std::memcpy(&blob, bytes.data(), sizeof blob);
    std::string error;
    slots_ = blob.receive_slots;
    map_ = shm::map_peer_memfd(shm::this_process(), blob.qp_fd, shm::qp_segment_bytes(slots_),
                               shm::PeerMay::write, &error);
    EXPECT_TRUE(map_) << error;
  }
  shm::QpSegment& header() const { return *reinterpret_cast<shm::QpSegment*>(map_.data()); }
  shm::PostedReceive& receive(std::uint32_t index) const {
    return reinterpret_cast<shm::PostedReceive*>(map_.data() + shm::receives_offset())[index % slots_];
  }
  shm::Cell& cell(std::uint32_t index) const {
    auto* cells = reinterpret_cast<shm::Cell*>(map_.data() + shm::cells_offset(slots_));
    return cells[index % shm::cells_for(slots_)];
  }
  std::size_t words() const { return map_.bytes() / sizeof(std::uint64_t); }
  shm::LongWord& word(std::size_t index) const {
    return reinterpret_cast<shm::LongWord*>(map_.data())[index];
  }

 private:
  std::uint32_t slots_ = 0;
  shm::Mapping map_;
};

class Chance {
 public:
  explicit Chance(std::uint32_t seed) : engine_(seed) {}
  std::uint64_t any() { return engine_(); }
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(engine_() % limit); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }
  /// Mostly figures at which checks go wrong.
  std::uint64_t figure() {
    constexpr std::uint64_t kEdges[] = {0,
                                        1,
                                        2,
                                        3,
                                        55,
                                        56,
                                        232,
                                        233,
                                        4095,
                                        4096,
                                        4097,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x100000000,
                                        ~std::uint64_t{0},
                                        ~std::uint64_t{4095}};
    return one_in(3) ? any() : kEdges[below(std::size(kEdges))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Cells as a peer might write them, most of them wrong somewhere. `next` is the one the owner looks at.
void scribble_ring(const RawSegment& ring, std::uint32_t next, Chance& chance) {
  shm::CellHeader header{};
  header.sequence = chance.one_in(4) ? static_cast<std::uint32_t>(chance.figure()) : next + 1;
  header.bytes = static_cast<std::uint16_t>(chance.figure());
  header.kind = static_cast<shm::CellKind>(chance.one_in(4) ? chance.below(256) : 1 + chance.below(3));
  header.placed = static_cast<std::uint8_t>(chance.one_in(4) ? chance.below(256) : chance.below(2));
  shm::Cell& cell = ring.cell(next);
  const std::uint64_t data = chance.figure();
  std::memcpy(cell.data, &data, sizeof data);
  cell.header.store(std::bit_cast<std::uint64_t>(header));
}

void scribble_words(const RawSegment& segment, Chance& chance) {
  for (std::uint32_t i = chance.below(8); i > 0; --i) {
    segment.word(chance.below(static_cast<std::uint32_t>(segment.words()))).store(chance.figure());
  }
}

/// What the hostile side shows of itself: its state, its posted receives.
void scribble_own_queue_pair(const RawSegment& own, Chance& chance) {
  if (chance.one_in(8)) own.header().state.store(static_cast<std::uint32_t>(chance.figure()));
  if (chance.one_in(4)) own.header().posted.fetch_add(chance.below(40));
  if (chance.one_in(4)) own.header().posted.store(static_cast<std::uint32_t>(chance.figure()));
  own.header().shortest_receive.store(static_cast<std::uint32_t>(chance.figure()));
  shm::PostedReceive& receive = own.receive(chance.below(64));
  if (chance.one_in(2)) receive.addr.store(chance.figure());
  if (chance.one_in(2)) receive.addr.fetch_add(chance.figure());
  receive.length.store(static_cast<std::uint32_t>(chance.figure()));
  if (chance.one_in(2)) receive.memory.store(static_cast<std::uint32_t>(chance.figure()));
}

/// And its tables. Descriptors are only such as are not this test's own memory.
void scribble_own_tables(shm::DeviceSegment& tables, std::uint32_t key, Chance& chance) {
  shm::TableKey& entry = tables.keys[key >> shm::kKeyGenerationBits];
  entry.key.store(key);
  if (chance.one_in(2)) entry.addr.store(chance.figure());
  if (chance.one_in(2)) entry.length.store(chance.figure());
  if (chance.one_in(2)) entry.memory.store(chance.below(4));
  if (chance.one_in(8)) entry.memory.store(static_cast<std::uint32_t>(chance.figure()));
  if (chance.one_in(4)) entry.qp_num.store(chance.below(3));
  entry.access.store(static_cast<std::uint32_t>(chance.one_in(2) ? ~0u : chance.figure()));
  shm::TableMemory& memory = tables.memories[chance.below(4)];
  if (chance.one_in(4)) memory.serial.store(chance.figure());
  if (chance.one_in(4)) memory.addr.store(chance.figure());
  if (chance.one_in(4)) memory.bytes.store(chance.figure());
  if (chance.one_in(4)) memory.fd.store(chance.one_in(2) ? chance.below(3) : 900000 + chance.below(100));
  for (shm::Poller& poller : tables.pollers)
    poller.sleeping.store(static_cast<std::uint32_t>(chance.figure()));
}

void act(ShmEnd& end, std::uint64_t remote_addr, std::uint32_t rkey, Chance& chance) {
  const Sge small = end.sge(0, chance.below(233));
  const Sge large = end.sge(4096, 233 + chance.below(100000));
  const std::uint64_t addr = chance.one_in(2) ? remote_addr : remote_addr + chance.figure();
  const std::uint32_t key = chance.one_in(8) ? static_cast<std::uint32_t>(chance.any()) : rkey;
  Wc batch[16];
  switch (chance.below(8)) {
    case 0:
      end.post(Opcode::send, 1, {&small, 1});
      break;
    case 1:
      end.post(Opcode::send, 2, {&large, 1});
      break;
    case 2:
      end.post(Opcode::rdma_read, 3, {&large, 1}, addr, key);
      break;
    case 3:
      end.post(Opcode::rdma_write, 4, {&large, 1}, addr, key);
      break;
    case 4:
      end.post(Opcode::send_with_inv, 5, {&small, 1}, 0, key);
      break;
    case 5:
      end.post(Opcode::local_inv, 6, {}, 0, end.window->rkey());
      break;
    case 6:
      end.cq->arm();
      end.cq->acknowledge();
      break;
    default:
      for (const Wc& wc : std::span(batch, end.cq->poll(batch))) {
        if (wc.opcode == Opcode::recv && wc.status == WcStatus::success) end.post_recv(wc.wr_id % 1000);
      }
  }
}

bool exchange_one(ShmEnd& from, ShmEnd& to) {
  const Sge sge = from.sge(0, 100);
  if (!from.post(Opcode::send, 9, {&sge, 1}) || from.next().status != WcStatus::success) return false;
  const Wc wc = to.next();
  if (wc.status != WcStatus::success || wc.bytes != 100) return false;
  to.post_recv(wc.wr_id - 1000);
  return true;
}

TEST(ShmHostile, GarbageCostsOnlyItsOwnQueuePair) {
  // Both sides are this process, so access by address would let the garbage aim at the test itself.
  const ShmOptions options{.revoke_grace_us = 0, .any_memory = false};
  ShmEnd victim(options), hostile(options), friendly(options);
  // A queue pair of the same device, to somebody else, must go on working.
  ShmEnd friend_side(options);
  ASSERT_EQ(friend_side.qp->connect(friendly.qp->local_address()), "");
  ASSERT_EQ(friendly.qp->connect(friend_side.qp->local_address()), "");
  const auto guard = victim.device->alloc_memory(1 << 20, "guard");
  std::memset(guard->data(), 0x77, guard->size());
  auto& tables = static_cast<shm::Device&>(*hostile.device).shared();
  const shm::TableMemory& shown = tables.memories[1];
  const std::uint64_t memory_addr = shown.addr.load(), memory_bytes = shown.bytes.load();
  const std::uint64_t memory_serial = shown.serial.load();
  const std::uint32_t memory_fd = shown.fd.load();

  std::uint32_t ended = 0;
  for (std::uint32_t seed = 0; seed < kRounds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chance chance(seed);
    victim.open_qp();
    hostile.open_qp();
    ASSERT_EQ(victim.qp->connect(hostile.qp->local_address()), "");
    ASSERT_EQ(hostile.qp->connect(victim.qp->local_address()), "");
    victim.window = victim.device->alloc_mw();
    ASSERT_TRUE(victim.bind_all(access_remote_read | access_remote_write));
    hostile.window = hostile.device->alloc_mw();
    ASSERT_TRUE(hostile.bind_all(access_remote_read | access_remote_write));
    const std::uint32_t key = hostile.window->rkey();
    const RawSegment theirs(*victim.qp), own(*hostile.qp);
    std::uint32_t next = shm::kFirstNumber;
    for (int step = 0; step < kSteps; ++step) {
      switch (chance.below(6)) {
        case 0:
          scribble_ring(theirs, next, chance);
          break;
        case 1:
          theirs.header().hazard.store(chance.one_in(2) ? victim.window->rkey() : chance.below(3));
          break;
        case 2:
          if (chance.one_in(4)) scribble_words(theirs, chance);
          if (chance.one_in(4)) scribble_own_queue_pair(own, chance);
          if (chance.one_in(4)) scribble_own_tables(tables, key, chance);
          break;
        case 3:
          hostile.cq->poll(std::span<Wc>());
          break;
        default:
          act(victim, hostile.region->addr(), key, chance);
      }
      if (chance.one_in(2)) ++next;
    }
    ended += victim.qp->state() == QpState::err ? 1u : 0u;
    // Give back a memory that works, so that the next round gets as far as this one.
    tables.memories[1].addr.store(memory_addr);
    tables.memories[1].bytes.store(memory_bytes);
    tables.memories[1].fd.store(memory_fd);
    tables.memories[1].serial.store(memory_serial);
    EXPECT_TRUE(std::all_of(guard->data(), guard->data() + guard->size(),
                            [](std::byte b) { return b == std::byte{0x77}; }));
    EXPECT_TRUE(exchange_one(friend_side, friendly));
    EXPECT_TRUE(exchange_one(friendly, friend_side));
  }
  EXPECT_GT(ended, kRounds / 2) << "most garbage should have been noticed";
}

/// Two connected ends of this process, with the raw bytes of the first one's queue pair.
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
  constexpr std::uint32_t kFirst = shm::kFirstNumber + 1;
  const Row rows[] = {
      {"no kind", {kFirst, 8, Kind{0}, 0}, {}, WcStatus::general_err},
      {"unknown kind", {kFirst, 8, Kind{4}, 0}, {}, WcStatus::general_err},
      {"more than the cells of a message hold",
       {kFirst, shm::kInlineMax + 1, Kind::send, 0},
       {},
       WcStatus::general_err},
      {"more than the ring holds", {kFirst, 0xffff, Kind::send, 0}, {}, WcStatus::general_err},
      {"half placed", {kFirst, 8, Kind::send, 2}, {}, WcStatus::general_err},
      {"an immediate without its length", {kFirst, 8, Kind::write_with_imm, 0}, {}, WcStatus::general_err},
      {"placed past its receive",
       {kFirst, 0, Kind::send, 1},
       {ShmEnd::kSlotBytes + 1, 0},
       WcStatus::loc_len_err},
      {"placed without end", {kFirst, 0, Kind::send, 1}, {~0u, 0}, WcStatus::loc_len_err},
      {"no key to invalidate", {kFirst, 8, Kind::send_with_inv, 0}, {0, 0}, WcStatus::rem_inv_req_err},
      {"a key that never was",
       {kFirst, 8, Kind::send_with_inv, 0},
       {0xdeadbeef, 0},
       WcStatus::rem_inv_req_err},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Raided pair;
    std::memset(pair.victim.slab->data(), 0x77, pair.victim.slab->size());
    const RawSegment ring(*pair.victim.qp);
    std::memcpy(ring.cell(0).data, row.data, sizeof row.data);
    ring.cell(0).header.store(std::bit_cast<std::uint64_t>(row.header));
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

TEST(ShmHostile, AMessageMoreThanThereAreReceivesIsRefused) {
  Raided pair;
  const RawSegment ring(*pair.victim.qp);
  for (std::uint32_t i = 0; i <= ShmEnd::kReceives; ++i) {
    ring.cell(i).header.store(
        std::bit_cast<std::uint64_t>(shm::CellHeader{shm::kFirstNumber + i + 1, 8, shm::CellKind::send, 0}));
  }
  for (std::uint32_t i = 0; i < ShmEnd::kReceives; ++i) {
    EXPECT_EQ(pair.victim.next().wr_id, 1000 + i);
  }
  Wc wc;
  EXPECT_EQ(pair.victim.cq->poll({&wc, 1}), 0u);
  EXPECT_EQ(pair.victim.qp->state(), QpState::err);
}

TEST(ShmHostile, ATableThatLiesGivesNoAccessOutsideItsMemory) {
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

TEST(ShmHostile, AReceiveThatLiesTakesNothing) {
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

// The same bytes changing while they are looked at.
TEST(ShmHostile, AProcessThatWritesAllTheTimeCannotBreakTheReader) {
  ShmEnd victim;
  ChildProcess child([](int socket) {
    ShmEnd hostile;
    for (std::uint32_t seed = 0;; ++seed) {
      const auto hello = hear<ShmHello>(socket);
      if (!hello) return 0;
      hostile.open_qp();
      if (!tell(socket, hello_of(hostile)) || !hostile.qp->connect(hello->blob()).empty()) return 1;
      shm::AddressBlob blob;
      std::memcpy(&blob, hello->address, sizeof blob);
      std::string error;
      const shm::Mapping map =
          shm::map_peer_memfd({blob.pid, blob.start_ticks}, blob.qp_fd,
                              shm::qp_segment_bytes(blob.receive_slots), shm::PeerMay::write, &error);
      if (!map) return 2;
      tell(socket, true);
      auto* cells = reinterpret_cast<shm::Cell*>(map.data() + shm::cells_offset(blob.receive_slots));
      Chance chance(seed);
      bool done;
      for (std::uint32_t i = 0; ::recv(socket, &done, sizeof done, MSG_DONTWAIT) < 0; ++i) {
        // Headers that are right, over data that is not, and now and then the other way round.
        shm::CellHeader header{};
        const std::uint32_t number = chance.below(ShmEnd::kReceives);
        header.sequence = shm::kFirstNumber + number + 1;
        header.kind = static_cast<shm::CellKind>(1 + 2 * chance.below(2));
        header.bytes = static_cast<std::uint16_t>(chance.below(240));
        header.placed = static_cast<std::uint8_t>(chance.below(2));
        const std::uint64_t data = chance.figure();
        std::memcpy(cells[number].data, &data, sizeof data);
        std::memcpy(cells[number].data + 4, &data, 4);
        cells[number].header.store(std::bit_cast<std::uint64_t>(header), std::memory_order_relaxed);
      }
    }
  });
  constexpr int kQueuePairs = 100;
  for (int i = 0; i < kQueuePairs; ++i) {
    victim.open_qp();
    ShmHello theirs;
    ASSERT_EQ(meet(victim, child.socket(), hello_of(victim), &theirs), "");
    ASSERT_TRUE(hear<bool>(child.socket()));
    std::uint32_t receives = 0;
    for (int polls = 0; polls < 20000 && receives < ShmEnd::kReceives; ++polls) {
      Wc batch[16];
      for (const Wc& wc : std::span(batch, victim.cq->poll(batch))) {
        ++receives;
        // Of a WRITE's immediate, `bytes` is what the peer says that it wrote.
        EXPECT_TRUE(wc.status != WcStatus::success || wc.has_imm || wc.bytes <= ShmEnd::kSlotBytes);
      }
    }
    victim.qp->to_error();
    Wc rest[16];
    receives += static_cast<std::uint32_t>(victim.cq->poll(rest));
    EXPECT_EQ(receives, ShmEnd::kReceives) << "every receive ends once";
    tell(child.socket(), true);
  }
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

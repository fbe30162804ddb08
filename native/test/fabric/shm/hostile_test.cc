// Tests garbage in every word that a peer can write, and in every table that it exposes. Only the peer's own
// queue pair may be affected. The garbage is seeded, and a failure prints the seed. These tests should also
// run under ASan and UBSan.
#include <algorithm>
#include <bit>

#include "fabric/shm/hostile.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint32_t kRounds = 400;
constexpr int kSteps = 120;

/// Writes cells as a peer might write them, most of them wrong in some part. `next` is the cell that the
/// owner reads next.
void scribble_ring(const RawSegment& ring, std::uint32_t next, Chance& chance) {
  const auto kind = static_cast<shm::CellKind>(chance.one_in(4) ? chance.below(128) : 1 + chance.below(3));
  const shm::CellHeader header(chance.one_in(4) ? chance.figure() : next + 1,
                               static_cast<std::uint32_t>(chance.figure()), kind, chance.one_in(2));
  shm::Cell& cell = ring.cell(chance.one_in(8) ? 0 : next);
  const std::uint64_t data = chance.figure();
  std::memcpy(cell.data, &data, sizeof data);
  cell.header.store(shm::pack(header));
}

void scribble_words(const RawSegment& segment, Chance& chance) {
  for (std::uint32_t i = chance.below(8); i > 0; --i) {
    segment.word(chance.below(static_cast<std::uint32_t>(segment.words()))).store(chance.figure());
  }
}

/// Overwrites the state and the posted receives that the hostile side exposes.
void scribble_own_queue_pair(const RawSegment& own, Chance& chance) {
  if (chance.one_in(8)) own.header().state.store(static_cast<std::uint32_t>(chance.figure()));
  if (chance.one_in(4)) own.header().posted.fetch_add(chance.below(40));
  if (chance.one_in(4)) own.header().posted.store(static_cast<std::uint32_t>(chance.figure()));
  own.header().consumed.fetch_add(chance.below(3));
  if (chance.one_in(4)) own.header().consumed.store(static_cast<std::uint32_t>(chance.figure()));
  own.header().shortest_receive.store(static_cast<std::uint32_t>(chance.figure()));
  shm::PostedReceive& receive = own.receive(chance.below(64));
  if (chance.one_in(2)) receive.addr.store(chance.figure());
  if (chance.one_in(2)) receive.addr.fetch_add(chance.figure());
  receive.length.store(static_cast<std::uint32_t>(chance.figure()));
  if (chance.one_in(2)) receive.memory.store(static_cast<std::uint32_t>(chance.figure()));
}

/// Overwrites the tables of the hostile side. Descriptors never refer to this test's own memory.
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
  const Sge small = end.sge(0, chance.below(shm::kInlineMax + 1));
  const Sge large = end.sge(4096, shm::kInlineMax + 1 + chance.below(100000));
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
  // Both sides are this process, so garbage that is accessed by address could damage the test itself.
  const ShmOptions options{.revoke_grace_us = 0, .any_memory = false, .epoch_cells = 4};
  ShmEnd victim(options), hostile(options), friendly(options);
  // Another queue pair of the same device must keep working.
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
    std::uint32_t next = 0;
    for (int step = 0; step < kSteps; ++step) {
      switch (chance.below(6)) {
        case 0:
          scribble_ring(theirs, next, chance);
          break;
        case 1:
          theirs.header().in_use.store(chance.one_in(2) ? victim.window->rkey() : chance.below(3));
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
    // Restores working memory, so that the next round gets as far as this one.
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

// The bytes change while they are being read.
TEST(ShmHostile, AConstantlyWritingProcessCannotBreakTheReader) {
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
        // In most cases the headers are valid and the data is invalid, and sometimes the reverse.
        const std::uint32_t number = chance.below(ShmEnd::kReceives);
        const auto kind = static_cast<shm::CellKind>(1 + 2 * chance.below(2));
        const shm::CellHeader header(number + 1, chance.below(240), kind, chance.one_in(2));
        const std::uint64_t data = chance.figure();
        std::memcpy(cells[number].data, &data, sizeof data);
        std::memcpy(cells[number].data + 4, &data, 4);
        cells[number].header.store(shm::pack(header), std::memory_order_relaxed);
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
        // For a WRITE with immediate, `bytes` is the number that the peer claims to have written.
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

// Random requests against a simple model: the same requests carried out on plain vectors, in the order
// posted. Whatever the fabric does with time, memory and completions must come out as the model has it.
#include <algorithm>
#include <array>
#include <random>

#include "fabric/fabric_suite.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::size_t kArena = 16384;  // the target of READs and WRITEs, and what they and SENDs are made of
constexpr std::size_t kSlots = 16, kSlotBytes = 512;

using Bytes = std::vector<std::byte>;

// One side as the model sees it.
struct Model {
  Memory* arena = nullptr;
  Memory* slots = nullptr;
  Bytes arena_bytes, slot_bytes;
  std::size_t next_slot = 0;

  void fill(std::uint32_t seed) {
    arena->fill(0, kArena, seed);
    arena_bytes.assign(arena->data(), arena->data() + kArena);
    slots->paint(0);
    slot_bytes.assign(kSlots * kSlotBytes, std::byte{0});
    next_slot = 0;
  }
  bool agrees() const {
    return std::memcmp(arena->data(), arena_bytes.data(), kArena) == 0 &&
           std::memcmp(slots->data(), slot_bytes.data(), slot_bytes.size()) == 0;
  }
};

}  // namespace

TEST_P(FabricSuite, RandomRequestsDoWhatTheModelSays) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](std::size_t limit) { return random() % limit; };
    Model models[2];
    Side* sides[2] = {&client_, &server_};
    for (std::size_t i = 0; i < 2; ++i) {
      models[i].arena = &memory(*sides[i], kArena, kAllRights);
      models[i].slots = &memory(*sides[i], kSlots * kSlotBytes, kLocal);
    }
    bool fresh = true;
    for (int round = 0; round < 40; ++round) {
      if (fresh) {
        recreate({.send_wr_max = kSlots, .recv_wr_max = kSlots});
        connect();
        for (std::size_t i = 0; i < 2; ++i) {
          models[i].fill(seed * 100 + static_cast<std::uint32_t>(round));
          for (std::size_t s = 0; s < kSlots; ++s) {
            post_recv(*sides[i], 1000 + s, models[i].slots->sge(s * kSlotBytes, kSlotBytes));
          }
        }
      }
      const std::size_t who = below(2);
      Side& from = *sides[who];
      Side& to = *sides[1 - who];
      Model &mine = models[who], &theirs = models[1 - who];

      // What each side must see: its wr_ids in order, and the bytes of each receive.
      std::vector<std::uint64_t> wanted;
      std::vector<std::pair<std::uint64_t, std::size_t>> arrivals;
      const std::size_t count = 1 + below(8);
      const bool ends_badly = below(6) == 0;
      bool after_read = false;
      for (std::size_t i = 0; i < count; ++i) {
        const Opcode opcode = std::array{Opcode::send, Opcode::rdma_write, Opcode::rdma_read}[below(3)];
        const bool read = opcode == Opcode::rdma_read;
        std::vector<Sge> sges;
        std::vector<std::size_t> offsets;
        std::size_t total = 0;
        const std::size_t pieces = 1 + below(read ? caps().max_sge_read : caps().max_sge);
        for (std::size_t p = 0; p < pieces; ++p) {
          // A READ's pieces must not overlap one another: a device may fill them in any order.
          const std::size_t room = kArena / pieces;
          const std::size_t length = below(std::min<std::size_t>(room, kSlotBytes / pieces) + 1);
          const std::size_t offset = p * room + below(room - length + 1);
          sges.push_back(mine.arena->sge(offset, length));
          offsets.push_back(offset);
          total += length;
        }
        const std::size_t remote = below(kArena - total + 1);
        SendWr wr = request(opcode, i, sges, theirs.arena->addr(remote), theirs.arena->rkey());
        wr.signaled = i + 1 == count || below(2) == 0;
        wr.fence = after_read;  // else a READ and what follows it may change places
        // Inline data is taken at the post, when a READ before it may not have landed yet.
        wr.inline_data = !read && !after_read && total <= caps().max_inline && below(2) == 0;
        const bool bad = ends_badly && i + 1 == count;
        if (bad) {
          wr.opcode = total > 0 ? Opcode::rdma_write : Opcode::recv;
          wr.rkey ^= 0x80;
        }
        post(from, wr);
        if (wr.signaled) wanted.push_back(i);
        if (bad) break;
        after_read = after_read || read;
        if (opcode == Opcode::send) arrivals.emplace_back(1000 + theirs.next_slot, total);
        std::size_t done = 0;
        for (std::size_t p = 0; p < pieces; ++p) {
          std::byte* local = mine.arena_bytes.data() + offsets[p];
          std::byte* other = opcode == Opcode::send
                                 ? theirs.slot_bytes.data() + theirs.next_slot * kSlotBytes + done
                                 : theirs.arena_bytes.data() + remote + done;
          std::memcpy(read ? local : other, read ? other : local, sges[p].length);
          done += sges[p].length;
        }
        if (opcode == Opcode::send) theirs.next_slot = (theirs.next_slot + 1) % kSlots;
      }
      for (const auto& [id, bytes] : arrivals) {
        ASSERT_EQ(expect(to, id).bytes, bytes);
        if (!ends_badly) post_recv(to, id, theirs.slots->sge((id - 1000) * kSlotBytes, kSlotBytes));
      }
      for (const std::uint64_t id : wanted) {
        const bool bad = ends_badly && id + 1 == count;
        const Wc wc = next(from);
        ASSERT_EQ(wc.wr_id, id);
        ASSERT_EQ(wc.status != WcStatus::success, bad) << to_string(wc.status);
      }
      settle();
      ASSERT_TRUE(mine.agrees() && theirs.agrees()) << "memory differs after round " << round;
      if (ends_badly) {
        EXPECT_EQ(from.qp->state(), QpState::err);
        for (Side* side : sides) side->completions.clear();
      } else {
        expect_quiet();
      }
      fresh = ends_badly;
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace rdma_rpc::fabric::test

// Tests random requests against a simple model: the same requests are executed on plain vectors, in the order
// in which they were posted. Whatever the fabric does with time, memory and completions, the result must
// equal that of the model.
#include <algorithm>
#include <array>
#include <random>

#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::size_t kArena = 16384;  // the target of READs and WRITEs, and the source of all payloads
constexpr std::size_t kSlots = 16, kSlotBytes = 512;
constexpr std::uint64_t kFirstSlotId = 1000;

// One side of the connection in the model.
struct Model {
  Memory* arena = nullptr;
  Memory* slots = nullptr;
  std::vector<std::byte> arena_bytes, slot_bytes;
  std::size_t next_slot = 0;

  void reset(std::uint32_t seed) {
    arena->fill(0, kArena, seed);
    arena_bytes.assign(arena->data(), arena->data() + kArena);
    slots->paint(0);
    slot_bytes.assign(kSlots * kSlotBytes, std::byte{0});
    next_slot = 0;
  }
  Sge slot(std::size_t index) const { return slots->sge(index * kSlotBytes, kSlotBytes); }
  bool agrees() const {
    return std::memcmp(arena->data(), arena_bytes.data(), kArena) == 0 &&
           std::memcmp(slots->data(), slot_bytes.data(), slot_bytes.size()) == 0;
  }
};

struct Step {
  Opcode opcode = Opcode::send;
  std::vector<Sge> sges;
  std::vector<std::size_t> offsets;  // offsets of the segments in the side's own arena
  std::size_t remote = 0;            // offset in the other side's arena
  std::size_t bytes = 0;

  bool is_read() const { return opcode == Opcode::rdma_read; }

  // Executes the request in the model.
  void apply(Model& mine, Model& theirs) const {
    std::byte* other = opcode == Opcode::send ? theirs.slot_bytes.data() + theirs.next_slot * kSlotBytes
                                              : theirs.arena_bytes.data() + remote;
    for (std::size_t i = 0; i < sges.size(); ++i) {
      std::byte* local = mine.arena_bytes.data() + offsets[i];
      std::memcpy(is_read() ? local : other, is_read() ? other : local, sges[i].length);
      other += sges[i].length;
    }
    if (opcode == Opcode::send) theirs.next_slot = (theirs.next_slot + 1) % kSlots;
  }
};

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool one_in(std::size_t count) { return below(count) == 0; }

  Step step(const Model& mine, const Capabilities& caps) {
    Step step;
    step.opcode = std::array{Opcode::send, Opcode::rdma_write, Opcode::rdma_read}[below(3)];
    const std::size_t segments = 1 + below(step.is_read() ? caps.max_sge_read : caps.max_sge);
    // Segments do not overlap, because a device may fill those of a READ in any order.
    const std::size_t room = kArena / segments;
    for (std::size_t i = 0; i < segments; ++i) {
      const std::size_t length = below(kSlotBytes / segments + 1);
      step.offsets.push_back(i * room + below(room - length + 1));
      step.sges.push_back(mine.arena->sge(step.offsets.back(), length));
      step.bytes += length;
    }
    step.remote = below(kArena - step.bytes + 1);
    return step;
  }

 private:
  std::mt19937 random_;
};

}  // namespace

TEST_P(FabricSuite, RandomRequestsDoWhatTheModelSays) {
  Model models[2];
  Side* sides[2] = {&client_, &server_};
  for (std::size_t i = 0; i < 2; ++i) {
    models[i].arena = &memory(*sides[i], kArena, kAllRights);
    models[i].slots = &memory(*sides[i], kSlots * kSlotBytes, kLocal);
  }
  const auto start_over = [&](std::uint32_t seed) {
    recreate({.send_wr_max = kSlots, .recv_wr_max = kSlots});
    connect();
    for (std::size_t i = 0; i < 2; ++i) {
      models[i].reset(seed + static_cast<std::uint32_t>(i));
      for (std::size_t s = 0; s < kSlots; ++s) post_recv(*sides[i], kFirstSlotId + s, models[i].slot(s));
    }
  };
  const auto stride = static_cast<std::uint32_t>(std::min<std::size_t>(case_stride(), 5));
  for (std::uint32_t seed = 1; seed <= 20; seed += stride) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    start_over(seed * 10);
    for (int round = 0; round < 40; ++round) {
      const std::size_t who = dice.below(2);
      Side &from = *sides[who], &to = *sides[1 - who];
      Model &mine = models[who], &theirs = models[1 - who];
      const std::size_t count = 1 + dice.below(8);
      const bool ends_badly = dice.one_in(6) && caps().names_refusals;
      std::vector<std::uint64_t> signaled;
      std::vector<std::pair<std::uint64_t, std::size_t>> arrivals;  // wr_id and number of bytes of each
      bool after_read = false;
      for (std::size_t i = 0; i < count; ++i) {
        const Step step = dice.step(mine, caps());
        SendWr wr = request(step.opcode, i, step.sges, theirs.arena->addr(step.remote), theirs.arena->rkey());
        wr.signaled = i + 1 == count || dice.one_in(2);
        wr.fence = after_read;  // otherwise a later request may overtake a READ
        // Inline data is copied at the post, when an earlier READ may not have written its bytes yet.
        wr.inline_data = !step.is_read() && !after_read && step.bytes <= caps().max_inline && dice.one_in(2);
        if (wr.signaled) signaled.push_back(i);
        if (ends_badly && i + 1 == count) {
          wr.opcode = step.bytes > 0 ? Opcode::rdma_write : Opcode::recv;
          wr.inline_data = false;
          wr.rkey ^= 0x80;
          post(from, wr);
          break;
        }
        post(from, wr);
        if (step.opcode == Opcode::send) arrivals.emplace_back(kFirstSlotId + theirs.next_slot, step.bytes);
        step.apply(mine, theirs);
        after_read = after_read || step.is_read();
      }
      for (const auto& [id, bytes] : arrivals) {
        ASSERT_EQ(expect(to, id).bytes, bytes);
        if (!ends_badly) post_recv(to, id, theirs.slot(id - kFirstSlotId));
      }
      for (const std::uint64_t id : signaled) {
        const Wc wc = next(from);
        ASSERT_EQ(wc.wr_id, id);
        ASSERT_EQ(wc.status != WcStatus::success, ends_badly && id + 1 == count) << to_string(wc.status);
      }
      settle();
      ASSERT_TRUE(arrived([&] { return mine.agrees() && theirs.agrees(); }))
          << "memory differs after round " << round;
      if (ends_badly) {
        EXPECT_EQ(from.qp->state(), QpState::err);
        for (Side* side : sides) side->completions.clear();
        start_over(seed * 1000 + static_cast<std::uint32_t>(round) * 2);
      } else {
        expect_quiet();
      }
    }
  }
}

}  // namespace rdma_rpc::fabric::test

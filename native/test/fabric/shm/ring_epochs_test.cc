// Tests ring epochs that end before the end of the ring. A queue pair with little traffic uses only its first
// cells. With any amount of traffic, no unread message is overwritten.
#include <cstring>
#include <deque>

#include "fabric/shm/hostile.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint32_t kEpoch = 8;

/// Two connected ends of this process. Each message of `from` contains the number of earlier messages.
class RingEpochs : public testing::TestWithParam<std::uint32_t> {
 protected:
  explicit RingEpochs(std::uint32_t cells = GetParam()) : options{.epoch_cells = cells} {
    EXPECT_EQ(from.qp->connect(to.qp->local_address()), "");
    EXPECT_EQ(to.qp->connect(from.qp->local_address()), "");
  }
  void send(std::uint32_t bytes) {
    auto* data = from.memory->data();
    std::memset(data, static_cast<int>(sent_ % 251), bytes);
    std::memcpy(data, &sent_, sizeof sent_);
    const Sge sge = from.sge(0, bytes);
    ASSERT_TRUE(from.post(Opcode::send, sent_, {&sge, 1}));
    ASSERT_EQ(from.next().status, WcStatus::success);
    lengths_.push_back(bytes);
    ++sent_;
  }
  /// Checks that the next message has arrived complete. Returns its receive.
  std::uint64_t take() {
    const Wc wc = to.next();
    EXPECT_EQ(wc.status, WcStatus::success);
    EXPECT_EQ(wc.bytes, lengths_.front());
    const std::byte* data = to.slab->data() + (wc.wr_id - 1000) * ShmEnd::kSlotBytes;
    std::uint32_t number = 0;
    std::memcpy(&number, data, sizeof number);
    EXPECT_EQ(number, taken_);
    for (std::uint32_t i = sizeof number; i < wc.bytes; ++i)
      EXPECT_EQ(data[i], std::byte{static_cast<unsigned char>(taken_ % 251)}) << "byte " << i;
    lengths_.pop_front();
    ++taken_;
    return wc.wr_id - 1000;
  }
  /// Returns the number of cells in the ring of `to` that were ever written.
  std::uint32_t cells_used() const {
    const RawSegment ring(*to.qp);
    std::uint32_t used = 0;
    for (std::uint32_t i = 0; i < shm::cells_for(ShmEnd::kReceives); ++i)
      used = ring.cell(i).header.load() != 0 ? i + 1 : used;
    return used;
  }
  std::uint32_t under_way() const { return sent_ - taken_; }

  const ShmOptions options;
  ShmEnd from{options}, to{options};

 private:
  std::uint32_t sent_ = 0, taken_ = 0;
  std::deque<std::uint32_t> lengths_;
};

class ShmRingEpochs : public RingEpochs {
 protected:
  ShmRingEpochs() : RingEpochs(kEpoch) {}
};

TEST_F(ShmRingEpochs, OneMessageAtATimeUsesTheFirstCells) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    send(4 + i * 7 % (shm::kInlineMax - 3));
    to.post_recv(take());
  }
  EXPECT_GT(cells_used(), kEpoch - 1);
  EXPECT_LT(cells_used(), kEpoch + shm::kCellsPerMessageMax);
}

TEST_F(ShmRingEpochs, CellsReadWithoutARepostCountWithTheNextPost) {
  std::uint64_t read = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    send(8);
    // One receive is always in use, as with a slow handler.
    if (i > 0) to.post_recv(read);
    read = take();
  }
  EXPECT_EQ(cells_used(), shm::cells_for(ShmEnd::kReceives)) << "the last one was never said to be read";
}

TEST_F(ShmRingEpochs, ManyAtOnceUseAllOfTheRing) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    send(shm::kInlineMax);
    if (under_way() == ShmEnd::kReceives) to.post_recv(take());
  }
  EXPECT_EQ(cells_used(), shm::cells_for(ShmEnd::kReceives));
}

TEST_F(ShmRingEpochs, AForgedReadCountHarmsOnlyItsSender) {
  const RawSegment ring(*to.qp);
  const Sge sge = from.sge(0, 8);
  for (std::uint32_t i = 0; i < ShmEnd::kReceives; ++i) {
    ring.header().consumed.store(shm::kFirstNumber + i);
    ASSERT_TRUE(from.post(Opcode::send, i, {&sge, 1}));
    EXPECT_EQ(from.next().status, WcStatus::success);
  }
  EXPECT_EQ(from.qp->state(), QpState::rts);
}

class ShmRingEpochsOf : public RingEpochs {};

TEST_P(ShmRingEpochsOf, EveryMessageArrivesWithAnyRequestsInProgress) {
  for (std::uint32_t seed = 0; seed < 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chance chance(seed);
    std::deque<std::uint64_t> kept;
    const std::uint32_t most = 1 + chance.below(ShmEnd::kReceives);
    for (int step = 0; step < 2000 && !HasFailure(); ++step) {
      const bool room = under_way() + kept.size() < most;
      if (room && chance.one_in(2)) {
        send(4 + chance.below(chance.one_in(8) ? 1000 : shm::kInlineMax));
      } else if (under_way() > 0 && chance.one_in(2)) {
        kept.push_back(take());
      } else if (!kept.empty()) {
        to.post_recv(kept.front());
        kept.pop_front();
      }
    }
    while (under_way() > 0) kept.push_back(take());
    for (const std::uint64_t receive : kept) to.post_recv(receive);
  }
}

INSTANTIATE_TEST_SUITE_P(Cells, ShmRingEpochsOf, testing::Values(1u, 2u, 3u, 7u, 16u, 64u));

}  // namespace
}  // namespace rdma_rpc::fabric::test

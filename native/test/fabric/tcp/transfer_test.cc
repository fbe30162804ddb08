// Tests faults that only tcp can have during a transfer: a key that ends in the middle of a frame, a queue
// pair that fails with a half-sent frame, small frames beside large transfers, and two sides that only write.
#include <optional>

#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

using tcp::Header;
using tcp::Op;

constexpr std::uint32_t kFrame = 32 << 10;

class TcpTransfer : public ::testing::Test {
 protected:
  void connect(std::size_t bytes = 64 << 10) {
    end.emplace(false, bytes);
    peer.emplace(*end);
    ASSERT_NO_FATAL_FAILURE(peer->connect());
  }
  /// Connects over a connection that accepts a few KiB at a time. A bulk frame then waits for the network,
  /// partly sent, until the peer reads.
  void connect_narrow() {
    end.emplace(false, std::size_t{tcp::kFrameBytesMax}, TcpOptions{.unsent_max = 4 << 10});
    peer.emplace(*end);
    ASSERT_NO_FATAL_FAILURE(peer->connect(8 << 10));
    for (std::size_t i = 0; i < tcp::kFrameBytesMax; ++i) pattern.push_back(std::byte(i * 31 + (i >> 8)));
    std::memcpy(end->host->data(), pattern.data(), pattern.size());
  }
  /// Starts a READ of all of the memory, in one frame; the end has sent only a part of this frame. Returns
  /// the frame's header.
  Header read_in_part(std::uint32_t key) {
    peer->send({.op = Op::read, .key = key, .addr = end->region->addr(), .total = tcp::kFrameBytesMax});
    Header header;
    const auto bytes = peer->take(sizeof header);
    EXPECT_EQ(bytes.size(), sizeof header);
    std::memcpy(static_cast<void*>(&header), bytes.data(), bytes.size());
    EXPECT_EQ(header.bytes, tcp::kFrameBytesMax);
    return header;
  }
  /// Binds the window to all of the memory. Returns its key.
  std::uint32_t bind(std::uint32_t access) {
    SendWr wr = request(Opcode::bind_mw, 0xb1, {});
    wr.bind = {end->window.get(), end->region.get(), end->region->addr(), end->region->length(), access};
    end->post(wr);
    EXPECT_EQ(end->outcome(0xb1), WcStatus::success);
    return end->window->rkey();
  }
  void end_window() {
    SendWr wr = request(Opcode::local_inv, 0x11, {});
    wr.invalidate_rkey = end->window->rkey();
    end->post(wr);
    EXPECT_EQ(end->outcome(0x11), WcStatus::success);
  }
  /// Waits until the end has received everything that was sent so far: the first `bytes` bytes of its memory
  /// are the sent ones.
  bool lands(std::size_t bytes) {
    return end->until([&] { return end->host->data()[bytes - 1] == std::byte{0x5a}; });
  }
  Header write_of(std::uint32_t key, std::uint32_t total) const {
    return {.op = Op::write,
            .flags = std::uint8_t{total <= tcp::kFrameBytesMax},  // a bool, which sets flag_ack
            .bytes = std::min(total, tcp::kFrameBytesMax),
            .key = key,
            .addr = end->region->addr(),
            .total = total};
  }

  std::optional<TcpEnd> end;
  std::optional<RawPeer> peer;
  std::vector<std::byte> pattern;
};

TEST_F(TcpTransfer, AWindowThatEndsInTheMiddleOfAFrameTakesNoFurtherByte) {
  ASSERT_NO_FATAL_FAILURE(connect());
  const std::uint32_t key = bind(access_remote_write);
  const std::vector<std::byte> half(kFrame / 2, std::byte{0x5a});
  peer->send(write_of(key, kFrame), half);
  ASSERT_TRUE(lands(half.size()));
  end_window();
  std::memset(end->host->data(), 0xee, end->host->size());
  peer->send_all(half.data(), half.size());
  Header answer;
  ASSERT_TRUE(peer->take_frame(&answer));
  EXPECT_EQ(answer.op, Op::refusal);
  EXPECT_EQ(tcp::refusal_status(answer.extra), WcStatus::rem_access_err);
  EXPECT_EQ(end->qp->state(), QpState::err);
  EXPECT_TRUE(end->untouched(0xee));
}

TEST_F(TcpTransfer, AfterTheFlushNoByteOfAFrameUnderWayLands) {
  ASSERT_NO_FATAL_FAILURE(connect());
  end->receive(9);
  const std::vector<std::byte> half(kFrame / 2, std::byte{0x5a});
  peer->send(write_of(end->region->rkey(), kFrame), half);
  ASSERT_TRUE(lands(half.size()));
  end->qp->to_error();
  EXPECT_EQ(end->outcome(9), WcStatus::wr_flush_err);
  std::memset(end->host->data(), 0xee, end->host->size());
  peer->send_all(half.data(), half.size());
  Header last;
  ASSERT_TRUE(peer->take_frame(&last));
  EXPECT_EQ(last.op, Op::bye);
  EXPECT_TRUE(end->untouched(0xee));
}

TEST_F(TcpTransfer, ARangeThatIsTooLongTouchesNoByteOfItsFirstFrame) {
  ASSERT_NO_FATAL_FAILURE(connect(1 << 20));
  std::memset(end->host->data(), 0xee, end->host->size());
  peer->send(write_of(end->region->rkey(), (1 << 20) + 1), std::vector<std::byte>(tcp::kFrameBytesMax));
  ASSERT_TRUE(end->until([&] { return end->qp->state() == QpState::err; }));
  EXPECT_TRUE(end->untouched(0xee));
}

/// This is more than the kernel buffers for a peer that does not read.
constexpr std::uint32_t kMuch = 64 << 20;

TEST_F(TcpTransfer, AWindowThatEndsDuringTheAnswerToAReadGivesNoFurtherByte) {
  ASSERT_NO_FATAL_FAILURE(connect(kMuch));
  const std::uint32_t key = bind(access_remote_read);
  std::memset(end->host->data(), 0x5a, end->host->size());
  peer->send({.op = Op::read, .key = key, .addr = end->region->addr(), .total = kMuch});
  Header header;
  std::vector<std::byte> payload;
  ASSERT_TRUE(peer->take_frame(&header, &payload));
  EXPECT_EQ(header.op, Op::data);
  end->poll();
  end_window();
  std::memset(end->host->data(), 0xee, end->host->size());
  std::size_t got = payload.size();
  while (peer->take_frame(&header, &payload)) {
    for (const std::byte byte : payload)
      ASSERT_EQ(byte, std::byte{0x5a}) << "read after the window had ended";
    got += payload.size();
  }
  EXPECT_LT(got, kMuch);
  EXPECT_EQ(end->qp->state(), QpState::err);
}

TEST_F(TcpTransfer, AWindowThatEndsWhileAFrameOfAnAnswerIsHalfSentGivesNoFurtherByteOfThatFrame) {
  ASSERT_NO_FATAL_FAILURE(connect_narrow());
  read_in_part(bind(access_remote_read));
  end_window();
  std::memset(end->host->data(), 0xee, end->host->size());
  const auto came = peer->take(tcp::kFrameBytesMax);
  EXPECT_LT(came.size(), std::size_t{tcp::kFrameBytesMax}) << "the rest of the frame was sent";
  EXPECT_EQ(std::memcmp(came.data(), pattern.data(), came.size()), 0) << "read after the window had ended";
  EXPECT_NE(end->qp->error().find("a window was invalidated"), std::string::npos) << end->qp->error();
}

/// The part of the frame that the revocation has copied no longer needs the window.
TEST_F(TcpTransfer, AFrameThatIsHalfSentWhenItsWindowIsRevokedAndEndsArrivesWhole) {
  ASSERT_NO_FATAL_FAILURE(connect_narrow());
  const std::uint32_t key = bind(access_remote_read);
  read_in_part(key);
  ASSERT_TRUE(end->qp->revoke(key));
  end_window();
  std::memset(end->host->data(), 0xee, end->host->size());
  EXPECT_EQ(peer->take(tcp::kFrameBytesMax), pattern);
  EXPECT_EQ(end->qp->state(), QpState::rts) << end->qp->error();
}

/// The peer could not distinguish a BYE frame from the missing bytes.
TEST_F(TcpTransfer, AFrameThatIsHalfSentWhenItsQueuePairEndsArrivesWholeBeforeTheGoodBye) {
  ASSERT_NO_FATAL_FAILURE(connect_narrow());
  const Sge all = end->sge(0, tcp::kFrameBytesMax);
  end->post(request(Opcode::rdma_write, 5, {&all, 1}, 0x1000, 1));
  Header header;
  ASSERT_EQ(peer->take(sizeof header).size(), sizeof header);
  end->qp->to_error();
  EXPECT_EQ(end->outcome(5), WcStatus::wr_flush_err);
  std::memset(end->host->data(), 0xee, end->host->size());
  EXPECT_EQ(peer->take(tcp::kFrameBytesMax), pattern);
  ASSERT_TRUE(peer->take_frame(&header));
  EXPECT_EQ(header.op, Op::bye);
}

TEST_F(TcpTransfer, AWindowThatIsRevokedDuringTheAnswerToAReadEndsTheAnswerAndNothingElse) {
  ASSERT_NO_FATAL_FAILURE(connect(kMuch));
  const std::uint32_t key = bind(access_remote_read);
  std::memset(end->host->data(), 0x5a, end->host->size());
  const Header read{.op = Op::read, .key = key, .addr = end->region->addr(), .total = kMuch};
  peer->send(read);
  Header header;
  std::vector<std::byte> payload;
  ASSERT_TRUE(peer->take_frame(&header, &payload));
  end->poll();
  ASSERT_TRUE(end->qp->revoke(key));
  std::memset(end->host->data(), 0xee, end->host->size());
  std::size_t got = payload.size();
  while (peer->take_frame(&header, &payload) && (header.flags & tcp::flag_memory_gone) == 0) {
    for (const std::byte byte : payload)
      ASSERT_EQ(byte, std::byte{0x5a}) << "read after the memory had been revoked";
    got += payload.size();
  }
  EXPECT_EQ(header.op, Op::data);
  EXPECT_EQ(header.total, kMuch - got);
  EXPECT_LT(got, kMuch);
  Header again = read;
  again.number = 1;
  peer->send(again);
  ASSERT_TRUE(peer->take_frame(&header, &payload));
  EXPECT_EQ(header.flags, tcp::flag_memory_gone);
  end_window();
  EXPECT_EQ(end->qp->state(), QpState::rts);
}

TEST_F(TcpTransfer, ASmallMessageOvertakesTheAnswerToALargeRead) {
  ASSERT_NO_FATAL_FAILURE(connect(kMuch));
  peer->send({.op = Op::read, .key = end->region->rkey(), .addr = end->region->addr(), .total = kMuch});
  Header header;
  ASSERT_TRUE(peer->take_frame(&header));
  const Sge sge = end->sge(0, 32);
  end->post(request(Opcode::send, 5, {&sge, 1}));
  std::size_t after = 0;
  for (bool seen = false; after + header.bytes < kMuch && peer->take_frame(&header);) {
    seen |= header.op == Op::send;
    if (seen && header.op == Op::data) after += header.bytes;
    if (header.total == header.bytes && header.op == Op::data) break;
  }
  EXPECT_GT(after, kMuch / 2) << "it waited for most of the transfer";
}

TEST_F(TcpTransfer, APollSendsOneFrameOfATransferAndThenReceives) {
  ASSERT_NO_FATAL_FAILURE(connect(kMuch));
  const Sge sge = end->sge(0, kMuch);
  end->post(request(Opcode::rdma_write, 5, {&sge, 1}, 0x1000, 1));
  std::uint64_t left = kMuch;
  for (int turns = 0; turns < 4; ++turns) {
    EXPECT_GE(end->qp->unsent_write_bytes() + tcp::kFrameBytesMax, left);
    left = end->qp->unsent_write_bytes();
    Wc none;
    EXPECT_EQ(end->cq->poll({&none, 1}), 0u);
  }
  EXPECT_LT(left, kMuch);
}

TEST_F(TcpTransfer, APartOfAWriteAndOneOfAnAnswerTakeTurns) {
  ASSERT_NO_FATAL_FAILURE(connect(kMuch));
  const Sge sge = end->sge(0, kMuch);
  end->post(request(Opcode::rdma_write, 5, {&sge, 1}, 0x1000, 1));
  peer->send({.op = Op::read, .key = end->region->rkey(), .addr = end->region->addr(), .total = kMuch});
  // Both transfers need the same number of frames.
  std::size_t written = 0, answered = 0;
  for (Header header; answered < kMuch && peer->take_frame(&header);) {
    (header.op == Op::data ? answered : written) += header.bytes;
  }
  EXPECT_EQ(answered, kMuch);
  EXPECT_GT(written, kMuch / 2) << "the WRITE waited for the answer";
  while (written < kMuch) {
    Header header;
    ASSERT_TRUE(peer->take_frame(&header));
    EXPECT_EQ(header.op, Op::write);
    written += header.bytes;
  }
}

TEST_F(TcpTransfer, APeerWhoseRequestHasFailedIsNotedAndTheNextRequestFails) {
  ASSERT_NO_FATAL_FAILURE(connect());
  end->receive(9);
  peer->send({.op = Op::gone});
  peer->close();
  for (int i = 0; i < 100; ++i) end->poll();
  EXPECT_EQ(end->qp->state(), QpState::rts);
  EXPECT_TRUE(end->completions.empty());
  end->post(request(Opcode::send, 5, {}));
  EXPECT_EQ(end->outcome(5), WcStatus::retry_exc_err);
  EXPECT_EQ(end->outcome(9), WcStatus::wr_flush_err);
}

TEST_F(TcpTransfer, RequestsWaitingForAPeerWhoseRequestFailedFail) {
  ASSERT_NO_FATAL_FAILURE(connect());
  end->post(request(Opcode::send, 5, {}));
  end->post(request(Opcode::send, 6, {}));
  peer->send({.op = Op::gone});
  EXPECT_EQ(end->outcome(5), WcStatus::retry_exc_err);
  EXPECT_EQ(end->outcome(6), WcStatus::wr_flush_err);
}

/// Small calls wait for unsent bytes, even if the kernel buffers some 10 MiB for a peer that does not read.
TEST_F(TcpTransfer, UnsentBytesOfAWriteAreReportedUntilThePeerReadsThem) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  ASSERT_NO_FATAL_FAILURE(connect(kBytes));
  const Sge all = end->sge(0, kBytes);
  end->post(request(Opcode::rdma_write, 0x21, {&all, 1}, end->region->addr(), end->region->rkey()));
  for (int i = 0; i < 1000; ++i) end->poll();
  EXPECT_TRUE(end->completions.empty());
  EXPECT_GT(end->qp->unsent_write_bytes(), kBytes / 2);
}

TEST_F(TcpTransfer, AConnectionThatEndsWithoutAGoodByeIsALoss) {
  ASSERT_NO_FATAL_FAILURE(connect());
  end->receive(9);
  peer->close();
  EXPECT_EQ(end->outcome(9), WcStatus::wr_flush_err);
  EXPECT_NE(end->qp->error().find("without a good-bye"), std::string::npos) << end->qp->error();
}

TEST(TcpBothWays, TwoSidesThatBothOnlyWriteDoNotBlockEachOther) {
  TcpEnd a(true, kMuch), b(false, kMuch);
  ASSERT_EQ(a.qp->connect(b.qp->local_address()), "");
  ASSERT_EQ(b.qp->connect(a.qp->local_address()), "");
  ASSERT_TRUE(wait_until([&] {
    a.poll();
    b.poll();
    return a.qp->state() == QpState::rts && b.qp->state() == QpState::rts;
  }));
  constexpr std::uint32_t kPart = kMuch / 4;
  for (auto [from, to] : {std::pair{&a, &b}, {&b, &a}}) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      const Sge sge = from->sge(0, kPart);
      from->post(request(Opcode::rdma_write, i, {&sge, 1}, to->region->addr() + kPart, to->region->rkey()));
    }
  }
  ASSERT_TRUE(wait_until([&] {
    a.poll();
    b.poll();
    return a.completions.size() == 4 && b.completions.size() == 4;
  }));
  for (const TcpEnd* side : {&a, &b}) {
    for (const Wc& wc : side->completions) EXPECT_EQ(wc.status, WcStatus::success);
  }
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

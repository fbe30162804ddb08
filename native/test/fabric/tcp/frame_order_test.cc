// Tests the order of frames. At any time exactly one frame may come next, and no other request comes between
// the frames of one request. Random requests meet a peer that checks every frame as a queue pair does, and a
// socket that accepts a few KiB at a time. Therefore the queue pair stops at every possible point. The
// requests are seeded; RDMA_RPC_FRAME_SEEDS sets the number of seeds.
#include <cstdlib>
#include <deque>
#include <optional>
#include <random>

#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

using tcp::Header;
using tcp::Op;

constexpr std::uint32_t kMemory = 1 << 20, kWindows = 6, kKey = 7;
constexpr int kBuffer = 8 << 10, kRounds = 60;

struct Scenario {
  explicit Scenario(std::uint64_t seed)
      : random(seed), end(false, kMemory, TcpOptions{.unsent_max = 4 << 10}), peer(end) {
    for (std::uint32_t i = 0; i < kMemory; ++i) end.host->data()[i] = std::byte(i * 31 + (i >> 8));
    for (std::uint32_t i = 0; i < kWindows; ++i) windows.push_back({end.device->alloc_mw()});
  }
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); }

  // --- what the end posts
  struct Window {
    std::unique_ptr<MemoryWindow> window;
    bool bound = false;
    std::uint32_t post = 0;  ///< the post that used it last, after which its key is known
  };
  /// A request that the peer must see, in order.
  struct Expected {
    Op op;
    std::uint32_t offset, bytes;
  };

  /// Posts some requests together: messages, WRITEs and READs of one frame and of several, and windows that
  /// are bound and invalidated.
  void post() {
    const std::uint32_t count = 1 + below(6);
    ++posts;
    std::vector<SendWr> wrs;
    std::vector<Sge> sges(count);
    for (std::uint32_t i = 0; i < count && open < 48; ++i, ++open) {
      SendWr wr = make(sges[i]);
      wr.wr_id = ++last_id;
      // The last request of a post is signaled, so that the queue is emptied.
      wr.signaled = wr.opcode == Opcode::local_inv || i + 1 == count || open == 47 || below(3) == 0;
      if (wr.signaled) signaled.push_back(wr.wr_id);
      wrs.push_back(wr);
    }
    ASSERT_EQ(end.qp->post_send(wrs), wrs.size());
  }
  SendWr make(Sge& sge) {
    const std::uint32_t kind = below(10);
    Window& one = windows[below(kWindows)];
    if (kind < 4 && std::exchange(one.post, posts) != posts) {
      SendWr wr = request(one.bound ? Opcode::local_inv : Opcode::bind_mw, 0, {});
      if (one.bound) {
        wr.invalidate_rkey = one.window->rkey();
      } else {
        wr.bind = {one.window.get(), end.region.get(), end.region->addr(), kMemory, access_remote_read};
      }
      one.bound = !one.bound;
      return wr;
    }
    const bool read = kind == 9, write = kind < 7;
    const std::uint32_t bytes = below(2) == 0 ? below(600) : below(read ? 2000 : 300 << 10);
    const std::uint32_t offset = below(kMemory - bytes);
    sge = end.sge(offset, bytes);
    const Opcode opcode = read ? Opcode::rdma_read : write ? Opcode::rdma_write : Opcode::send;
    expected.push_back({read ? Op::read : write ? Op::write : Op::send, offset, bytes});
    return request(opcode, 0, {&sge, 1}, kRemote, kKey);
  }

  // --- the peer
  void read(std::size_t most) {
    const std::size_t have = came.size();
    came.resize(have + most);
    const ssize_t got = ::recv(peer.fd(), came.data() + have, most, MSG_DONTWAIT);
    came.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    std::size_t at = 0;
    for (Header header; came.size() - at >= sizeof header && !failed(); at += sizeof header + header.bytes) {
      std::memcpy(static_cast<void*>(&header), came.data() + at, sizeof header);
      if (came.size() - at < sizeof header + header.bytes) break;
      frame(header, came.data() + at + sizeof header);
    }
    came.erase(came.begin(), came.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void frame(const Header& header, const std::byte* payload) {
    ASSERT_EQ(tcp::why_malformed(header), nullptr);
    switch (header.op) {
      case Op::data:
        ASSERT_FALSE(reads.empty());
        ASSERT_EQ(header.addr, reads.front().moved);
        ASSERT_EQ(std::memcmp(payload, end.host->data() + reads.front().offset + header.addr, header.bytes),
                  0);
        reads.front().moved += header.bytes;
        if (header.bytes == header.total) reads.pop_front();
        return;
      case Op::ack:
        return;
      default:
        break;
    }
    ASSERT_TRUE(header.op == Op::send || header.op == Op::write || header.op == Op::read)
        << "frame " << int(header.op) << ", error " << end.qp->error();
    if (next) {
      EXPECT_EQ(header.op, next->op) << "another request in the middle of one";
      ASSERT_EQ(header.number, next->number) << "another request in the middle of one";
      ASSERT_EQ(header.addr, next->addr);
      ASSERT_EQ(header.total, next->total);
    } else {
      ASSERT_EQ(header.number, handled);
    }
    const bool question = header.op == Op::write && header.key == 0 && header.total == 0;
    if (!question) {
      ASSERT_FALSE(expected.empty());
      const Expected& one = expected.front();
      ASSERT_EQ(header.op, one.op);
      if (!next) {
        ASSERT_EQ(header.total, one.bytes);
      }
      const std::uint32_t at = one.bytes - header.total;
      ASSERT_EQ(std::memcmp(payload, end.host->data() + one.offset + at, header.bytes), 0);
    }
    if (header.bytes < header.total && header.op != Op::read) {
      next = header;
      next->addr += header.bytes;
      next->total -= header.bytes;
      return;
    }
    next.reset();
    if (header.op == Op::read && header.total > 0) {
      std::vector<std::byte> answer(end.host->data() + expected.front().offset,
                                    end.host->data() + expected.front().offset + header.total);
      // The end READs the peer's memory. The peer returns the bytes that are already here, so that nothing
      // changes.
      answers.push_back(
          {{.op = Op::data, .bytes = header.total, .number = header.number, .total = header.total},
           std::move(answer)});
    }
    if (!question) expected.pop_front();
    ++handled;
    asked = asked || (header.flags & tcp::flag_ack) != 0;
  }
  /// Sends the rest of the peer's bytes, a part of it later.
  void say() {
    if (asked && below(3) != 0) {
      peer.send({.op = Op::ack, .number = handled});
      asked = false;
    }
    while (!answers.empty() && below(3) != 0) {
      peer.send(answers.front().first, answers.front().second);
      answers.pop_front();
    }
    if (!ending && reads.size() < 4 && below(6) == 0) {
      const std::uint32_t bytes = 1 + below(100 << 10), offset = below(kMemory - bytes);
      reads.push_back({offset, 0});
      peer.send({.op = Op::read,
                 .number = asked_reads++,
                 .key = end.region->rkey(),
                 .addr = end.region->addr() + offset,
                 .total = bytes});
    }
  }
  void count_completions() {
    for (const Wc& wc : end.completions) {
      ASSERT_EQ(wc.status, WcStatus::success) << end.qp->error();
      ASSERT_FALSE(signaled.empty());
      ASSERT_EQ(wc.wr_id, signaled.front()) << "completions keep their order";
      signaled.pop_front();
      open = static_cast<std::uint32_t>(last_id - wc.wr_id);
    }
    end.completions.clear();
  }
  void round() {
    if (open < 48 && below(2) == 0) post();
    for (std::uint32_t i = below(4); i > 0; --i) end.poll();
    read(1 + below(64 << 10));
    if (!failed()) say();
    count_completions();
  }
  void run() {
    ASSERT_NO_FATAL_FAILURE(peer.connect(kBuffer));
    for (int i = 0; i < kRounds && !failed(); ++i) round();
    ending = true;
    EXPECT_TRUE(wait_until([&] {
      end.poll();
      read(64 << 10);
      if (!failed()) say();
      count_completions();
      return failed() || (signaled.empty() && reads.empty() && expected.empty());
    })) << "it stands still with "
        << signaled.size() << " completions due: " << end.qp->error();
  }

  static bool failed() { return ::testing::Test::HasFailure(); }

  static constexpr std::uint64_t kRemote = 0x10000000;
  struct Read {
    std::uint32_t offset, moved;
  };
  std::mt19937_64 random;
  TcpEnd end;
  RawPeer peer;
  std::vector<Window> windows;
  std::deque<Expected> expected;
  std::deque<std::uint64_t> signaled;
  std::uint64_t last_id = 0;
  std::uint32_t open = 0, posts = 0;
  std::vector<std::byte> came;
  std::optional<Header> next;  ///< expected header of the next frame, for a request in progress
  std::uint32_t handled = 0, asked_reads = 0;
  bool asked = false, ending = false;
  std::deque<std::pair<Header, std::vector<std::byte>>> answers;
  std::deque<Read> reads;  ///< READs of the end that the peer has not answered
};

TEST(TcpFrameOrder, FramesOfOneRequestAreContiguous) {
  const char* given = std::getenv("RDMA_RPC_FRAME_SEEDS");
  const int seeds = given == nullptr ? 40 : std::atoi(given);
  for (int seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scenario scenario(static_cast<std::uint64_t>(seed));
    scenario.run();
  }
}

/// One post contains three requests: a message, a signaled invalidation, which needs an ack, and a WRITE
/// whose first frame could be sent with the message.
TEST(TcpFrameOrder, AnInvalidationAsksBeforeTheRequestOfSeveralFramesBehindIt) {
  TcpEnd end(false, kMemory);
  RawPeer peer(end);
  ASSERT_NO_FATAL_FAILURE(peer.connect());
  SendWr bind = request(Opcode::bind_mw, 1, {});
  bind.bind = {end.window.get(), end.region.get(), end.region->addr(), kMemory, access_remote_read};
  end.post(bind);
  ASSERT_EQ(end.outcome(1), WcStatus::success);
  const Sge small = end.sge(0, 32), all = end.sge(0, kMemory);
  SendWr message = request(Opcode::send, 2, {&small, 1});
  message.signaled = false;
  SendWr invalidate = request(Opcode::local_inv, 3, {});
  invalidate.invalidate_rkey = end.window->rkey();
  const SendWr wrs[] = {message, invalidate, request(Opcode::rdma_write, 4, {&all, 1}, 0x1000, kKey)};
  ASSERT_EQ(end.qp->post_send(wrs), 3u);
  Header header;
  std::vector<std::uint32_t> numbers;
  do {
    ASSERT_TRUE(peer.take_frame(&header)) << end.qp->error();
    numbers.push_back(header.number);
  } while (header.op != Op::write || header.key != kKey || header.bytes != header.total);
  std::vector<std::uint32_t> in_order = {0, 1};
  in_order.resize(2 + kMemory / tcp::kFrameBytesMax, 2);
  EXPECT_EQ(numbers, in_order) << "the message, the question, the WRITE";
  peer.send({.op = Op::ack, .number = 2});
  EXPECT_EQ(end.outcome(3), WcStatus::success);
  peer.send({.op = Op::ack, .number = 3});
  EXPECT_EQ(end.outcome(4), WcStatus::success);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

// Tests coalesced small messages: the tests check when they wait, and that every message is sent in the end.
#include "fabric/tcp/queue/coalescing.h"

#include <memory>
#include <optional>

#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

using std::chrono::microseconds;
using tcp::Coalescing;

struct VirtualClock {
  using duration = microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<VirtualClock>;
  static constexpr bool is_steady = true;
  static inline time_point time{};
  static time_point now() { return time; }
};

struct GatheringCase {
  const char* what;
  std::uint32_t messages;
  std::uint64_t left;
  int after_us;  ///< time after the completions were returned
  bool waits;
};

TEST(TcpCoalescing, MessagesWaitWhileMoreAreExpected) {
  constexpr GatheringCase kCases[] = {
      {"a lone call", 1, 0, 1, false},
      {"the last of several", 1, 1, 1, false},
      {"the first batch of many", 16, 48, 10, true},
      {"as many as are left: the peer has work, this side too", 32, 32, 10, false},
      {"a user who takes its time", 16, 48, 31, false},
      {"a whole batch of frames", 64, 1000, 10, true},
      {"more than a batch of frames", 65, 1000, 10, false},
  };
  for (const GatheringCase& each : kCases) {
    Coalescing<VirtualClock> coalescing;
    VirtualClock::time += microseconds(1000);
    coalescing.gave_out(each.left);
    VirtualClock::time += microseconds(each.after_us);
    EXPECT_EQ(coalescing.may_wait(each.messages, each.left), each.waits) << each.what;
  }
}

TEST(TcpCoalescing, NothingWaitsLongerThanABatchTakes) {
  Coalescing<VirtualClock> coalescing;
  EXPECT_FALSE(coalescing.is_over()) << "nothing waits";
  for (int batch = 0; batch < 5; ++batch) {
    coalescing.gave_out(1000);
    VirtualClock::time += microseconds(10);
    ASSERT_TRUE(coalescing.may_wait(1, 1000));
    EXPECT_FALSE(coalescing.is_over()) << "since the first of them";
  }
  VirtualClock::time += microseconds(11);
  EXPECT_TRUE(coalescing.is_over());
  coalescing.end();
  EXPECT_FALSE(coalescing.is_over());
}

/// A peer that is only a socket has sent eight messages at once; one of them has been polled and answered.
class TcpCoalesced : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kMessages = 8, kBytes = 64;

  explicit TcpCoalesced(bool polls_on = true) : polls_on_(polls_on) {}
  void SetUp() override { begin(); }
  void begin() {
    peer.reset();
    end = std::make_unique<TcpEnd>(false, 64 << 10, TcpOptions{}, polls_on_);
    peer.emplace(*end);
    ASSERT_NO_FATAL_FAILURE(peer->connect());
    std::vector<std::byte> frames;
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      end->receive(100 + i, i * kBytes, kBytes);
      const tcp::Header header{.op = tcp::Op::send, .bytes = kBytes, .number = i, .total = kBytes};
      const auto* bytes = reinterpret_cast<const std::byte*>(&header);
      frames.insert(frames.end(), bytes, bytes + sizeof header);
      frames.resize(frames.size() + kBytes);
    }
    peer->send_unpolled(frames);
    Wc one;
    ASSERT_TRUE(wait_until([&] { return end->cq->poll({&one, 1}) == 1; }));
    const Sge sge = end->sge(0, kBytes);
    end->post(request(Opcode::send, 5, {&sge, 1}));
  }
  void expect_answer() {
    tcp::Header header;
    ASSERT_TRUE(peer->take_frame(&header));
    EXPECT_EQ(header.op, tcp::Op::send);
    EXPECT_EQ(header.bytes, kBytes);
  }

  std::unique_ptr<TcpEnd> end;
  std::optional<RawPeer> peer;

 private:
  const bool polls_on_;
};

/// If the test is too slow to count as a quick user, it starts again.
TEST_F(TcpCoalesced, PostsWaitWhileCompletionsAreUnpolled) {
  EXPECT_TRUE(wait_until([&] {
    if (!peer->readable()) return true;
    begin();
    return false;
  }));
  expect_answer();
}

TEST_F(TcpCoalesced, PostsAreSentWhenAllIsPolled) {
  ASSERT_TRUE(end->until([&] { return end->completions.size() == kMessages - 1; }));
  end->poll();
  expect_answer();
}

/// The messages come from a user that may never poll again.
class TcpNotCoalesced : public TcpCoalesced {
 protected:
  TcpNotCoalesced() : TcpCoalesced(false) {}
};

TEST_F(TcpNotCoalesced, PostedRequestsAreSentAtOnce) {
  EXPECT_TRUE(wait_until([&] { return peer->readable(); }));
}

TEST_F(TcpCoalesced, PostsAreSentBeforeTheEndOfTheQueuePair) {
  end->qp->to_error();
  expect_answer();
}

TEST_F(TcpCoalesced, PostsAreSentBeforeTheQueuePairIsDestroyed) {
  end->qp.reset();
  expect_answer();
}

TEST_F(TcpCoalesced, LaterPostsFollowWaitingMessages) {
  const Sge sge = end->sge(0, kBytes);
  end->post(request(Opcode::rdma_write, 6, {&sge, 1}, 0x1000, 1));
  expect_answer();
  tcp::Header header;
  ASSERT_TRUE(peer->take_frame(&header));
  EXPECT_EQ(header.op, tcp::Op::write);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

// Tests that a path that drops packets is noticed. Other causes are not mistaken for such a path: a peer that
// is stopped, reads slowly or has closed its window, and a network that loses packets.
#include "fabric/tcp/queue/path_watch.h"

#include <linux/filter.h>

#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

using tcp::PathWatch;
using Found = PathWatch::Found;

/// One second of the test, with the information of the kernel at its end.
struct Second {
  bool sends;
  PathState state;
  Found found;
};
struct Course {
  const char* name;
  std::vector<Second> seconds;
};
void PrintTo(const Course& course, std::ostream* out) { *out << course.name; }

class TcpPath : public testing::TestWithParam<Course> {};

TEST_P(TcpPath, MatchesTheKernelsState) {
  PathState state;
  const TcpOptions options{.path_state = [&state](int) { return state; }};
  PathWatch watch;
  int second = 0;
  for (const Second& each : GetParam().seconds) {
    if (each.sends) watch.sent();
    state = each.state;
    EXPECT_EQ(watch.look(options, -1, PathWatch::Clock::time_point(std::chrono::seconds(second))), each.found)
        << "second " << second;
    EXPECT_EQ(watch.is_silent(), each.found == Found::silent);
    ++second;
  }
}

constexpr bool kSends = true, kRests = false;
constexpr PathState kArrived{0, 0};

INSTANTIATE_TEST_SUITE_P(
    Courses, TcpPath,
    testing::Values(Course{"nothing is ever sent",
                           {{kRests, {9, 9, 9000}, Found::nothing}, {kRests, {9, 9, 9000}, Found::nothing}}},
                    Course{"all arrives",
                           {{kSends, {9, 9, 9000}, Found::under_way},
                            {kSends, kArrived, Found::nothing},
                            {kRests, {9, 9, 9000}, Found::nothing},
                            {kSends, {9, 9, 9000}, Found::under_way},
                            {kRests, kArrived, Found::nothing}}},
                    Course{"a peer that is stopped: it answers each probe",
                           {{kSends, {0, 9}, Found::under_way},
                            {kSends, {0, 9}, Found::under_way},
                            {kRests, {1, 9}, Found::under_way},
                            {kRests, {0, 9}, Found::under_way},
                            {kRests, {1, 9}, Found::under_way},
                            {kRests, {0, 9}, Found::under_way}}},
                    Course{"a network that loses four in a row, twice",
                           {{kSends, {1, 9}, Found::under_way},
                            {kRests, {3, 9}, Found::under_way},
                            {kRests, {4, 9}, Found::under_way},
                            {kSends, {1, 9}, Found::under_way},
                            {kSends, {4, 9}, Found::under_way},
                            {kRests, {4, 9}, Found::under_way},
                            {kRests, kArrived, Found::nothing}}},
                    Course{"the fifth repetition arrives after the look",
                           {{kSends, {3, 9}, Found::under_way},
                            {kRests, {3, 9}, Found::under_way},
                            {kRests, {4, 9}, Found::under_way},
                            {kRests, {4, 9}, Found::under_way},
                            {kRests, {4, 9}, Found::under_way},
                            {kRests, {5, 9, 9000}, Found::under_way},
                            {kSends, {0, 9}, Found::under_way},
                            {kRests, kArrived, Found::nothing}}},
                    Course{"a hole",
                           {{kSends, {2, 9}, Found::under_way},
                            {kRests, {3, 9}, Found::under_way},
                            {kRests, {4, 9}, Found::under_way},
                            {kRests, {4, 9}, Found::under_way},
                            {kRests, {5, 9, 9000}, Found::under_way},
                            {kRests, {5, 9, 9000}, Found::silent}}},
                    Course{"a hole that more is sent into",
                           {{kSends, {3, 9}, Found::under_way},
                            {kSends, {4, 99}, Found::under_way},
                            {kSends, {4, 999}, Found::under_way},
                            {kSends, {4, 999}, Found::under_way},
                            {kSends, {4, 999}, Found::under_way},
                            {kSends, {5, 999, 9000}, Found::under_way},
                            {kSends, {6, 999, 9000}, Found::silent}}},
                    Course{"many repetitions in a short time, which the queue of this host drops",
                           {{kSends, {3, 9}, Found::under_way},
                            {kRests, {5, 9, 9000}, Found::under_way},
                            {kRests, {7, 9, 9000}, Found::under_way},
                            {kRests, {9, 9, 9000}, Found::under_way},
                            {kRests, {11, 9, 9000}, Found::under_way},
                            {kRests, {13, 9, 9000}, Found::silent}}},
                    Course{"a peer that is stopped, and then a hole",
                           {{kSends, {0, 9}, Found::under_way},
                            {kRests, {0, 9}, Found::under_way},
                            {kRests, {2, 9}, Found::under_way},
                            {kRests, {3, 9}, Found::under_way},
                            {kRests, {4, 9}, Found::under_way},
                            {kRests, {5, 9, 9000}, Found::under_way},
                            {kRests, {6, 9, 9000}, Found::silent}}},
                    Course{"a network that loses much, or one direction that is silent: the peer is heard",
                           {{kSends, {3, 9, 100}, Found::under_way},
                            {kSends, {4, 9, 900}, Found::under_way},
                            {kSends, {5, 9, 100}, Found::under_way},
                            {kSends, {5, 9, 900}, Found::under_way},
                            {kSends, {5, 9, 100}, Found::under_way},
                            {kRests, {5, 9, 900}, Found::under_way},
                            {kRests, {5, 9, 100}, Found::under_way},
                            {kRests, {6, 9, 900}, Found::under_way},
                            {kRests, {6, 9, 100}, Found::silent}}}));

TEST(TcpPathWatch, RetransmissionsWhileThisProcessWasStoppedAreIgnored) {
  PathState state{4, 9, 9000};
  const TcpOptions options{.path_state = [&state](int) { return state; }};
  PathWatch watch;
  const auto look = [&](int second) {
    return watch.look(options, -1, PathWatch::Clock::time_point(std::chrono::seconds(second)));
  };
  watch.sent();
  EXPECT_EQ(look(0), Found::under_way);
  EXPECT_EQ(look(1), Found::under_way);
  state.unanswered = 6;  // nothing has checked for 14 s: the path may work again, but nothing has tried it
  for (int second = 15; second < 25; ++second) EXPECT_EQ(look(second), Found::under_way) << second;
  state.unanswered = 7;
  EXPECT_EQ(look(25), Found::under_way);
  EXPECT_EQ(look(26), Found::silent);
}

/// A queue pair and its peer. The packets to the peer's socket can be dropped before its kernel sees them.
struct Way {
  explicit Way(const TcpOptions& options = {}, int receive_bytes = 0)
      : end(false, 64 << 10, options), peer(end) {
    peer.connect(receive_bytes);
  }
  /// Drops packets to the peer with more than `bytes` bytes, including headers, from now on.
  void swallow(std::uint32_t bytes) const {
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
                          BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, bytes, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
                          BPF_STMT(BPF_RET | BPF_K, 0xffffffff)};
    const sock_fprog program{std::size(code), code};
    ASSERT_EQ(::setsockopt(peer.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
  }
  void send(std::uint32_t bytes) {
    const Sge sge = end.sge(0, bytes);
    end.post(request(Opcode::send, 1, {&sge, 1}));
    end.poll();
  }
  bool is_up() {
    end.poll();
    return end.qp->state() == QpState::rts;
  }
  TcpEnd end;
  RawPeer peer;
};

constexpr std::uint32_t kLarge = 60'000;

/// These cases use the real kernel, so each lasts as long as its connection takes to fail. All of them run at
/// the same time.
TEST(TcpPathOfTheKernel, OnlyHolesEndTheirConnections) {
  Way hole, large_only, stopped({}, 4096), slow({}, 4096), at_rest;
  hole.swallow(0);
  large_only.swallow(1200);
  for (Way* way : {&hole, &large_only, &stopped, &slow, &at_rest}) way->send(100);
  for (Way* way : {&large_only, &stopped, &slow})
    for (int i = 0; i < 40; ++i) way->send(kLarge);
  std::byte some[64];
  // Under an emulator TCP_INFO does not say when the peer was heard, so more retransmissions are awaited.
  constexpr std::chrono::seconds kLimit{60};
  ASSERT_TRUE(wait_until(
      [&] {
        ::recv(slow.peer.fd(), some, sizeof some, MSG_DONTWAIT);
        for (Way* way : {&stopped, &slow, &at_rest}) EXPECT_TRUE(way->is_up()) << way->end.qp->error();
        return HasFailure() || (!hole.is_up() && !large_only.is_up());
      },
      kLimit));
  EXPECT_NE(hole.end.qp->error().find(" 132 bytes were not acknowledged for "), std::string::npos)
      << hole.end.qp->error();
  EXPECT_NE(large_only.end.qp->error().find("loses what is sent"), std::string::npos)
      << large_only.end.qp->error();
  EXPECT_EQ(large_only.peer.take(132).size(), 132u) << "what was small has arrived";
}

TEST(TcpPathThatIsSilent, IsNamedByItsEndsAndResetBehindTheReason) {
  Way way({.path_look_ms = 1, .path_state = [](int) { return PathState{7, 1234}; }});
  way.send(100);
  ASSERT_TRUE(way.end.until([&] { return way.end.qp->state() == QpState::err; }));
  const std::string why = way.end.qp->error();
  EXPECT_NE(why.find("from " + tcp::to_text(way.peer.address().endpoint) + " to 127.0.0.1:"),
            std::string::npos)
      << why;
  EXPECT_NE(why.find(": 1234 bytes were not acknowledged for 0 s, in spite of 7 retransmissions"),
            std::string::npos)
      << why;
  EXPECT_EQ(way.end.outcome(1), WcStatus::wr_flush_err);
  const auto heard = way.peer.take(sizeof(tcp::Header) + 100 + 1);
  EXPECT_EQ(heard.size(), sizeof(tcp::Header) + 100) << "no good-bye, which would be repeated for a minute";
  std::byte next;
  EXPECT_EQ(::recv(way.peer.fd(), &next, 1, MSG_DONTWAIT), 0)
      << "the reset has been taken as an error before";
}

TEST(TcpPathThatIsSilent, EndsItsOwnQueuePairOnly) {
  int silent = -1;
  Way way({.path_look_ms = 1, .path_state = [&silent](int fd) {
             if (silent == -1) silent = fd;
             return fd == silent ? PathState{5, 1, 9000} : PathState{4, 1};
           }});
  TcpEnd& end = way.end;
  way.send(100);
  const std::unique_ptr<QueuePair> first = std::move(end.qp);
  end.qp =
      end.device->create_qp(*end.cq, {.send_wr_max = 64, .recv_wr_max = 64, .active = false}, &end.error);
  RawPeer other(end);
  other.connect();
  way.send(100);
  ASSERT_TRUE(end.until([&] { return first->state() == QpState::err; }));
  EXPECT_EQ(end.qp->state(), QpState::rts) << end.qp->error();
}

/// More queue pairs exist than the device checks before other work has its turn.
TEST(TcpPathThatIsSilent, IsFoundAmongManyBusyQueuePairs) {
  int last = -1;
  TcpEnd end(false, 4096, {.path_look_ms = 1, .path_state = [&last](int fd) {
                             last = std::max(last, fd);
                             return PathState{fd == last ? 5u : 0u, 1, 9000};
                           }});
  std::vector<std::unique_ptr<QueuePair>> all;
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 150; ++i) {
    peers.push_back(std::make_unique<RawPeer>(end));
    ASSERT_NO_FATAL_FAILURE(peers.back()->connect());
    all.push_back(std::move(end.qp));
    end.qp =
        end.device->create_qp(*end.cq, {.send_wr_max = 4, .recv_wr_max = 4, .active = false}, &end.error);
  }
  const Sge sge = end.sge(0, 100);
  const SendWr wr = request(Opcode::send, 1, {&sge, 1});
  for (const auto& qp : all) ASSERT_EQ(qp->post_send({&wr, 1}), 1u);
  ASSERT_TRUE(end.until([&] { return all.back()->state() == QpState::err; }));
  all.pop_back();
  for (const auto& qp : all) EXPECT_EQ(qp->state(), QpState::rts) << qp->error();
}

/// Until the reset the device owns the socket, but its counters do not count it.
TEST(TcpPathThatIsSilent, LeavesNothingWhenTheDeviceIsClosedBeforeTheReset) {
  auto way = std::make_unique<Way>(TcpOptions{.path_look_ms = 1, .path_state = [](int) {
                                                return PathState{5, 1, 9000};
                                              }});
  way->send(100);
  ASSERT_TRUE(way->end.until([&] { return way->end.qp->state() == QpState::err; }));
  const std::uint64_t fds = way->end.device->counters().open_fds;
  way->end.qp.reset();
  EXPECT_EQ(way->end.device->counters().open_fds, fds);
  EXPECT_EQ(way->end.device->counters().queue_pairs, 0u);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

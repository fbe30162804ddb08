// Tests coalesced messages, and the completion queue that gives queue pairs their turns, in every order of
// the kernel's actions. At each system call, the peer's next bytes may have been delivered. At each reading
// of the clock, the thread may have been stopped for a while. The tests run the real code on real sockets.
// The system calls below replace those of this whole program. Outside of a model they have no effect.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

/// One execution. The first choices of the execution are given. After them, the execution takes the first
/// option of each choice.
struct World {
  struct Choice {
    std::size_t made, options;
  };
  std::size_t choose(std::size_t options) {
    if (at == path.size()) path.push_back({0, options});
    return path[at++].made;
  }
  /// Delivers a message, or not, as the model chooses at each system call.
  void called() {
    if (in_peer || deliveries.empty()) return;
    if (choose(2) == 1) deliver();
  }
  void deliver() {
    in_peer = true;
    deliveries.front()();
    deliveries.erase(deliveries.begin());
    in_peer = false;
  }
  std::int64_t time_ns() {
    const bool stands_still = pauses != 0 && choose(2) == 1;
    if (stands_still) --pauses;
    return now_ns += stands_still ? 100'000 : 1'000;
  }

  std::vector<Choice> path;
  std::size_t at = 0;
  std::vector<std::function<void()>> deliveries;
  std::size_t pauses = 2;
  std::int64_t now_ns = 0;
  bool in_peer = false;
};

World* world = nullptr;

void called() {
  if (world != nullptr) world->called();
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

using rdma_rpc::fabric::test::called;
using rdma_rpc::fabric::test::world;

extern "C" {
int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
  called();
  return static_cast<int>(
      ::syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, nullptr, std::size_t{8}));
}
ssize_t recv(int fd, void* to, std::size_t bytes, int flags) {
  called();
  return ::syscall(SYS_recvfrom, fd, to, bytes, flags, nullptr, nullptr);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  called();
  return ::syscall(SYS_recvmsg, fd, message, flags);
}
ssize_t send(int fd, const void* from, std::size_t bytes, int flags) {
  called();
  return ::syscall(SYS_sendto, fd, from, bytes, flags, nullptr, 0);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  called();
  return ::syscall(SYS_sendmsg, fd, message, flags);
}
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (world == nullptr || clock != CLOCK_MONOTONIC)
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  const std::int64_t now_ns = world->time_ns();
  time->tv_sec = static_cast<time_t>(now_ns / 1'000'000'000);
  time->tv_nsec = static_cast<long>(now_ns % 1'000'000'000);
  return 0;
}
}

namespace rdma_rpc::fabric::test {
namespace {

struct Shape {
  const char* name;
  std::vector<std::uint32_t> deliveries;  ///< number of messages that arrive with each delivery
  std::size_t batch;                      ///< number of completions that the user gets with one poll
  bool another;                           ///< another connection exists, so the kernel reports events of both
};

/// A user that answers every third message and sleeps when it has nothing to do. The last answer may
/// therefore wait for more.
class TcpModel : public testing::TestWithParam<Shape> {
 protected:
  static constexpr std::uint32_t kBytes = 64;

  TcpModel() : end(false, 64 << 10, TcpOptions{}, true) {
    if (GetParam().another) {
      other_peer = std::make_unique<RawPeer>(end);
      other_peer->connect();
      other = std::move(end.qp);
      end.qp = end.device->create_qp(
          *end.cq, {.send_wr_max = 64, .recv_wr_max = 64, .active = false, .polls_on = true}, &end.error);
    }
  }
  /// Returns the bytes of the peer's messages in one delivery.
  std::vector<std::byte> messages(std::uint32_t count, std::uint32_t first) const {
    std::vector<std::byte> frames;
    for (std::uint32_t i = 0; i < count; ++i) {
      const tcp::Header header{.op = tcp::Op::send, .bytes = kBytes, .number = first + i, .total = kBytes};
      const auto* bytes = reinterpret_cast<const std::byte*>(&header);
      frames.insert(frames.end(), bytes, bytes + sizeof header);
      frames.resize(frames.size() + kBytes);
    }
    return frames;
  }
  /// Returns the number of answers that have reached the peer.
  std::uint32_t answers_there(const RawPeer& peer) {
    std::byte bytes[4096];
    for (;;) {
      const ssize_t got =
          ::syscall(SYS_recvfrom, peer.fd(), bytes, sizeof bytes, MSG_DONTWAIT, nullptr, nullptr);
      if (got <= 0) break;
      came.insert(came.end(), bytes, bytes + got);
    }
    for (tcp::Header header; came.size() >= sizeof header;) {
      std::memcpy(static_cast<void*>(&header), came.data(), sizeof header);
      if (came.size() < sizeof header + header.bytes) break;
      if (header.op == tcp::Op::send) ++answers;
      came.erase(came.begin(), came.begin() + static_cast<std::ptrdiff_t>(sizeof header + header.bytes));
    }
    return answers;
  }
  bool rings() const {
    pollfd fd{end.cq->fd(), POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
  }

  /// Returns "", or what went wrong.
  std::string run(std::vector<World::Choice>* path) {
    RawPeer peer(end);
    peer.connect();
    // Sent bytes arrive at once.
    const int on = 1;
    EXPECT_EQ(::setsockopt(peer.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    World here;
    here.path = *path;
    here.now_ns = std::chrono::steady_clock::now().time_since_epoch().count();
    std::uint32_t all = 0;
    for (const std::uint32_t count : GetParam().deliveries) {
      here.deliveries.push_back([&peer, frames = messages(count, all)] {
        ::syscall(SYS_sendto, peer.fd(), frames.data(), frames.size(), MSG_NOSIGNAL, nullptr, 0);
      });
      all += count;
    }
    for (std::uint32_t i = 0; i < all; ++i) end.receive(i, i * kBytes, kBytes);
    answers = 0;
    came.clear();
    world = &here;
    const std::string wrong = serve(here, peer, all);
    world = nullptr;
    *path = here.path;
    path->resize(std::min(path->size(), here.at));
    end.qp = end.device->create_qp(
        *end.cq, {.send_wr_max = 64, .recv_wr_max = 64, .active = false, .polls_on = true}, &end.error);
    return wrong;
  }
  std::string serve(World& here, const RawPeer& peer, std::uint32_t all) {
    std::uint32_t received = 0, answered = 0;
    for (int steps = 0; steps < 1000; ++steps) {
      Wc batch[16];
      const std::size_t count = end.cq->poll({batch, GetParam().batch});
      for (std::size_t i = 0; i < count; ++i) {
        if (batch[i].status != WcStatus::success) return "a request has failed";
        if (batch[i].opcode != Opcode::recv) continue;
        ++received;
        if (batch[i].wr_id % 3 != 0) continue;
        const Sge sge = end.sge(0, kBytes);
        end.post(request(Opcode::send, 1000, {&sge, 1}));
        ++answered;
      }
      if (count != 0 || !end.cq->arm()) continue;
      // The user is asleep. Everything that was posted must have been sent, because no thread polls now, and
      // arriving bytes must wake the user.
      if (answers_there(peer) != answered) return "an answer waits while its user sleeps";
      if (rings()) {
        end.cq->acknowledge();
        continue;
      }
      if (here.deliveries.empty()) return received == all ? "" : "a message was lost";
      here.deliver();
      if (!rings()) return "what has come does not wake the sleeper";
      end.cq->acknowledge();
    }
    return "the user never comes to rest";
  }

  TcpEnd end;
  std::unique_ptr<RawPeer> other_peer;
  std::unique_ptr<QueuePair> other;
  std::vector<std::byte> came;
  std::uint32_t answers = 0;
};

TEST_P(TcpModel, NoAnswerWaitsForASleeperAndEveryMessageWakesOne) {
  std::vector<World::Choice> path;
  std::size_t runs = 0;
  do {
    ++runs;
    const std::string wrong = run(&path);
    std::string choices;
    for (const World::Choice& choice : path) choices += std::to_string(choice.made);
    ASSERT_EQ(wrong, "") << "in execution " << runs << ", by the choices " << choices;
    while (!path.empty() && ++path.back().made == path.back().options) path.pop_back();
  } while (!path.empty());
  // With fewer runs, the fabric would not be calling the functions of this file.
  EXPECT_GT(runs, 100u);
}

INSTANTIATE_TEST_SUITE_P(Shapes, TcpModel,
                         testing::Values(Shape{"OneByOne", {1, 1, 1, 1}, 16, false},
                                         Shape{"SomeAtOnce", {3, 1}, 1, false},
                                         Shape{"SomeTwice", {3, 3, 2}, 2, false},
                                         Shape{"AmongOthers", {3, 1}, 1, true},
                                         Shape{"OneByOneAmongOthers", {1, 1, 1, 1}, 16, true}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rdma_rpc::fabric::test

// Implements the part that runs in the test's process; see peer_process.h. peer_main.cc is the other process.
#include "verbs/peer/peer_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace rdma_rpc::session::test {

namespace {
/// Ranges of call ids, one for each process of a test.
constexpr std::uint64_t kProcessesMax = 20, kIdsPerProcess = kForeignCalls / kProcessesMax;

std::vector<std::byte> address_of(const ReportMessage& report) {
  const std::byte* from = report.address.data();
  return {from, from + report.address_bytes};
}

void set_address(OrderMessage& order, const std::vector<std::byte>& address) {
  order.address_bytes = static_cast<std::uint32_t>(address.size());
  std::copy(address.begin(), address.end(), order.address.begin());
}
}  // namespace

std::uint64_t PeerProcess::started_ = 0;

void expect_foreign_calls(Ledger& ledger) {
  for (std::size_t i = 0; i < kForeignCalls; ++i) ledger.add({});
}

PeerProcess::PeerProcess(std::size_t end) : first_id_(started_++ % kProcessesMax * kIdsPerProcess) {
  int pair[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  socket_ = pair[0];
  // The socket is passed on by its number and must stay open at exec. All other descriptors close.
  ::fcntl(pair[1], F_SETFD, 0);
  const std::string fd = std::to_string(pair[1]), which = std::to_string(end);
  std::string self(4096, '\0');
  self.resize(
      static_cast<std::size_t>(std::max<ssize_t>(::readlink("/proc/self/exe", self.data(), 4096), 0)));
  std::vector<std::string> words{self, "--peer", fd, which};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  EXPECT_EQ(::posix_spawn(&pid_, self.c_str(), nullptr, nullptr, argv.data(), environ), 0);
  ::close(pair[1]);
}

PeerProcess::~PeerProcess() {
  ::close(socket_);
  if (!dead_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

ReportMessage PeerProcess::ask(OrderMessage order, std::vector<Side*> sides) {
  order.first_id = first_id_;
  ReportMessage report;
  EXPECT_EQ(::send(socket_, &order, sizeof order, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof order));
  ssize_t got = -1;
  const auto answered = [&] {
    got = ::recv(socket_, &report, sizeof report, MSG_DONTWAIT);
    return got >= 0;
  };
  drive(sides, answered, "the answer of the other process", socket_);
  EXPECT_EQ(got, static_cast<ssize_t>(sizeof report)) << "the other process has ended";
  return report;
}

std::uint32_t PeerProcess::connect_as_server_of(Side& side, std::uint32_t inflight_max) {
  const std::uint32_t number = side.open(small_session(true, inflight_max));
  if (number == 0) return 0;
  OrderMessage order{.order = Order::open, .client = false, .inflight_max = inflight_max};
  set_address(order, side.session(number).local_address());
  const ReportMessage report = ask(order, {&side});
  EXPECT_EQ(side.session(number).connect(address_of(report)), "");
  drive(
      {&side}, [&] { return side.is_up(number) || side.is_down(number); }, "a connection");
  EXPECT_EQ(side.why_down(number), "");
  return number;
}

std::uint32_t PeerProcess::connect_as_client_of(Side& side, std::uint32_t inflight_max) {
  const std::uint32_t number = side.open(small_session(false, inflight_max));
  if (number == 0) return 0;
  OrderMessage order{.order = Order::open, .client = true, .inflight_max = inflight_max};
  const ReportMessage report = ask(order, {&side});
  EXPECT_EQ(side.session(number).connect(address_of(report)), "");
  order.order = Order::connect;
  set_address(order, side.session(number).local_address());
  ask(order, {&side});
  drive(
      {&side}, [&] { return side.is_up(number) || side.is_down(number); }, "a connection");
  EXPECT_EQ(side.why_down(number), "");
  return number;
}

void PeerProcess::signal(int number) {
  ::kill(pid_, number);
  int status = 0;
  EXPECT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
  halted_ = true;
  dead_ = !WIFSTOPPED(status);
}

void PeerProcess::resume() {
  halted_ = false;
  ::kill(pid_, SIGCONT);
}

bool PeerProcess::halted() {
  int status = 0;
  if (!halted_ && ::waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_) {
    halted_ = true;
    dead_ = !WIFSTOPPED(status);
  }
  return halted_;
}

void PeerProcess::quit(std::vector<Side*> sides) {
  const ReportMessage report = ask(Order::quit, std::move(sides));
  EXPECT_EQ(report.violations, 0u) << report.violation();
  EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  dead_ = true;
}

}  // namespace rdma_rpc::session::test

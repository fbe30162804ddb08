// Measures the throughput of a plain C program by TCP over loopback. It sends blocks of a given size from one
// process to another. With `echo`, the blocks are also sent back. It has no frames and no checks, and uses
// blocking calls. bench/sender.ts starts it, or a user starts it by hand:
//   tcp_stream put|echo BYTES WARM_UP_MS MEASURE_MS
// It prints one line of JSON: bytes per second in one direction, and the CPU time of both processes.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void no_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Returns false when the connection has ended.
bool receive(int fd, std::vector<char>& block) {
  std::size_t have = 0;
  while (have < block.size()) {
    const ssize_t got = ::recv(fd, block.data() + have, block.size() - have, 0);
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  return true;
}

bool send(int fd, const std::vector<char>& block) {
  std::size_t sent = 0;
  while (sent < block.size()) {
    const ssize_t took = ::send(fd, block.data() + sent, block.size() - sent, MSG_NOSIGNAL);
    if (took <= 0) return false;
    sent += static_cast<std::size_t>(took);
  }
  return true;
}

/// Receives blocks until the client has ended, and with `echo` sends each block back.
void serve(int listener, bool echo, std::size_t bytes) {
  const int fd = ::accept(listener, nullptr, nullptr);
  if (fd < 0) fail("accept");
  no_delay(fd);
  std::vector<char> block(bytes);
  const char word = 1;
  while (receive(fd, block)) {
    if (echo ? !send(fd, block) : ::send(fd, &word, 1, MSG_NOSIGNAL) != 1) return;
  }
}

double cpu_seconds(int who) {
  rusage use{};
  ::getrusage(who, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  const bool echo = argc == 5 && std::strcmp(argv[1], "echo") == 0;
  if (argc != 5 || (!echo && std::strcmp(argv[1], "put") != 0)) {
    std::fprintf(stderr, "usage: tcp_stream put|echo BYTES WARM_UP_MS MEASURE_MS\n");
    return 2;
  }
  const auto bytes = static_cast<std::size_t>(std::atoll(argv[2]));
  const std::chrono::milliseconds warm_up(std::atoll(argv[3])), measured(std::atoll(argv[4]));

  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    fail("listen");
  }
  const auto begin = std::chrono::steady_clock::now();
  const pid_t server = ::fork();
  if (server < 0) fail("fork");
  if (server == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(listener, echo, bytes);
    return 0;
  }
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
  no_delay(fd);

  // Two threads are used, so that a server which echoes never waits for a client that only sends.
  std::atomic<std::size_t> blocks{0};
  std::thread answers([&] {
    std::vector<char> answer(echo ? bytes : 1);
    while (receive(fd, answer)) blocks.fetch_add(1, std::memory_order_relaxed);
  });
  std::atomic<bool> over{false};
  std::thread requests([&] {
    const std::vector<char> block(bytes, 'x');
    while (!over.load(std::memory_order_relaxed) && send(fd, block)) {
    }
  });
  std::this_thread::sleep_for(warm_up);
  const auto from = std::chrono::steady_clock::now();
  const std::size_t before = blocks.load();
  std::this_thread::sleep_for(measured);
  const std::size_t count = blocks.load() - before;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - from;
  over = true;
  ::shutdown(fd, SHUT_RDWR);
  requests.join();
  answers.join();
  ::waitpid(server, nullptr, 0);
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  const double cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
  std::printf("{\"bytesPerSecond\":%.0f,\"cpuPercent\":%.1f}\n",
              static_cast<double>(count * bytes) / elapsed.count(), 100 * cpu / all.count());
  return 0;
}

// Measures the cost of a session on real devices, without Node. Two processes have a device each, and run one
// load. It prints one line of JSON. bench/verbs/main.ts starts it beside perftest, or a user starts it by
// hand:
//   verbs_session LOAD poll|events window|shared CALLS DEVICE_OF_SERVER DEVICE_OF_CLIENT [BYTES]
// LOAD is pingpong, read, write, beside-read or beside-write, or with BYTES echo-sent or echo-moved.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "load.h"

using namespace rdma_rpc::bench;
using rdma_rpc::session::Exposure;

namespace {

/// The first calls create registrations, windows and page tables.
constexpr std::size_t kWarmUpCalls = 16;
constexpr std::size_t kCallsMax = 10'000'000;
constexpr std::size_t kBytesMax = std::size_t{16} << 20;

struct Arguments {
  Load load;
  Wait wait;
  Exposure exposure;
  std::size_t calls;
  const char *server_device, *client_device;
  std::size_t bytes;
};

bool read_number(const char* text, std::size_t most, std::size_t* number) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, *number).ptr == end && *number != 0 && *number <= most;
}

Arguments parse(int argc, char** argv) {
  const char* usage =
      "usage: pingpong|read|write|beside-read|beside-write|echo-sent|echo-moved poll|events window|shared "
      "CALLS DEVICE_OF_SERVER DEVICE_OF_CLIENT [BYTES]";
  if (argc != 7 && argc != 8) fail(usage);
  const std::optional<Load> load = load_of(argv[1]);
  const bool shared = std::strcmp(argv[3], "shared") == 0;
  const bool events = std::strcmp(argv[2], "events") == 0;
  std::size_t calls = 0, bytes = 0;
  const bool echoes = load == Load::echo_sent || load == Load::echo_moved;
  if (!load || (!shared && std::strcmp(argv[3], "window") != 0) ||
      (!events && std::strcmp(argv[2], "poll") != 0) || !read_number(argv[4], kCallsMax, &calls) ||
      echoes != (argc == 8) || (echoes && !read_number(argv[7], kBytesMax, &bytes))) {
    fail(usage);
  }
  return {*load,
          events ? Wait::events : Wait::poll,
          shared ? Exposure::shared : Exposure::window,
          calls,
          argv[5],
          argv[6],
          bytes};
}

void report(Timing timing) {
  std::sort(timing.call_ns.begin(), timing.call_ns.end());
  const auto percentile = [&](std::size_t percent) {
    return static_cast<double>(timing.call_ns[(timing.call_ns.size() - 1) * percent / 100]) / 1e3;
  };
  const double seconds = static_cast<double>(timing.end_ns - timing.begin_ns) / 1e9;
  std::printf("{\"callUs\":%.2f,\"p99Us\":%.2f,\"bytesPerSecond\":%.0f}\n", percentile(50), percentile(99),
              static_cast<double>(timing.bytes) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) fail("no socket");
  // The process forks before a device is opened, because the memory of a device must not be shared with a
  // child.
  const pid_t server = ::fork();
  if (server < 0) fail("cannot fork");
  ::close(sockets[server == 0 ? 1 : 0]);
  if (server == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    End end({arguments.server_device, false, arguments.wait, arguments.exposure, sockets[0]});
    serve(end, arguments.load, arguments.bytes);
  }
  {
    End end({arguments.client_device, true, arguments.wait, arguments.exposure, sockets[1]});
    ask(end, arguments.load, arguments.bytes, kWarmUpCalls);
    report(ask(end, arguments.load, arguments.bytes, arguments.calls));
    // The server is stopped first, because it would mistake the end of its session for a failure.
    ::kill(server, SIGKILL);
    ::waitpid(server, nullptr, 0);
  }
  return 0;
}

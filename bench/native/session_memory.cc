// Measures the memory of a session. It creates 1,000 sessions in one context of the simulated fabric, first
// as clients and then as servers, and prints the heap bytes and the resident bytes of each. Run it by hand:
//
//   build/bench/session_memory [CALL_SLOTS]     default 256
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "fabric/sim/sim.h"
#include "session/context.h"

namespace {

using namespace rdma_rpc;

constexpr int kSessions = 1000;

std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::size_t resident_bytes() {
  unsigned long all = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%lu %lu", &all, &resident);
  std::fclose(file);
  return read == 2 ? resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

bool measure(bool client, std::uint32_t call_slots) {
  fabric::SimWorld world;
  std::string error;
  const std::unique_ptr<session::Context> context = session::Context::open(world.open_device(), {}, &error);
  if (context == nullptr) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return false;
  }
  const std::size_t heap = heap_bytes(), resident = resident_bytes();
  for (int i = 0; i < kSessions; ++i) {
    session::SessionOptions options;
    options.client = client;
    options.call_slots = call_slots;
    if (context->create_session(options, &error) >= 0) continue;
    std::fprintf(stderr, "%s\n", error.c_str());
    return false;
  }
  std::printf("%s with %u call slots: %zu bytes of the heap, %zu resident\n", client ? "client" : "server",
              call_slots, (heap_bytes() - heap) / kSessions, (resident_bytes() - resident) / kSessions);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint32_t call_slots =
      argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 256;
  // Client and server are measured in separate processes, because in one process the server would reuse the
  // memory that the client has freed.
  for (const bool client : {true, false}) {
    const pid_t child = ::fork();
    if (child == 0) return measure(client, call_slots) ? 0 : 1;
    int status = 1;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  return 0;
}

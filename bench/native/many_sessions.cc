// Measures the cost of calls over many sessions in native code, without Node and without two processes that
// wait for each other. A client's and a server's context over shared memory run in turn in one thread. It
// prints the time of a call on both sides for each number of sessions, and the number of memory pages that
// the call of a session touches. Run it by hand:
//
//   build/bench/many_sessions [SESSIONS …]     default 10 100 1000; at least 10
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fabric/shm/shm.h"
#include "session/context.h"

namespace {

using namespace rdma_rpc;
namespace boundary = session::boundary;
namespace ctl = boundary::ctl;
namespace ev = boundary::ev;
namespace sub = boundary::sub;

constexpr int kInFlight = 256;
/// Number of call slots that a session's calls use in turn. It is small, because each slot has memory of its
/// own.
constexpr std::size_t kCallsEach = 64;
/// With fewer sessions, a call would get the slot of a call that is still in progress, and would never end.
constexpr int kSessionsMin = 10;
constexpr std::uint32_t kMessageBytes = 40;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

class Side {
 public:
  bool open() {
    std::string error;
    auto device = fabric::open_shm_device({}, &error);
    if (device != nullptr) context_ = session::Context::open(std::move(device), {}, &error);
    if (context_ == nullptr) std::fprintf(stderr, "%s\n", error.c_str());
    return context_ != nullptr;
  }
  session::Context& context() { return *context_; }

  session::Session* add(bool client) {
    std::string error;
    session::SessionOptions options;
    options.client = client;
    options.call_slots = 512;
    const std::int64_t number = context_->create_session(options, &error);
    if (number < 0) std::fprintf(stderr, "%s\n", error.c_str());
    return number < 0 ? nullptr : context_->find(static_cast<std::uint32_t>(number));
  }

  bool submit(boundary::SubOp op, std::uint32_t session, std::uint32_t call, std::uint32_t method) {
    std::int32_t& free = context_->control()[ctl::free_slots];
    if (free == 0) context_->flush();
    if (free == 0) return false;
    const std::int32_t slot = context_->free_slots()[--free];
    std::memset(context_->slots().payload(static_cast<std::uint32_t>(slot)), 1, kMessageBytes);
    std::int32_t& staged = context_->control()[ctl::staged];
    std::int32_t* words = context_->submissions() + staged * sub::words;
    words[sub::op] = static_cast<std::int32_t>(op);
    words[sub::session] = static_cast<std::int32_t>(session);
    words[sub::call] = static_cast<std::int32_t>(call);
    words[sub::method] = static_cast<std::int32_t>(method);
    words[sub::slot] = slot;
    words[sub::metadata_bytes] = 0;
    words[sub::message_bytes] = kMessageBytes;
    words[sub::timeout_us] = 0;
    if (++staged == 16) context_->flush();
    return true;
  }

  /// Runs one iteration. Calls `f(words)` for each event.
  template <class F>
  void turn(F&& f) {
    const std::uint32_t count = context_->progress(now_ns());
    if (count != 0) {
      context_->begin_callback();
      for (std::uint32_t i = 0; i < count; ++i) f(context_->events() + std::size_t{i} * ev::words);
    }
    context_->finish_turn();
  }

 private:
  std::unique_ptr<session::Context> context_;
};

struct Load {
  Side client, server;
  std::vector<std::uint32_t> numbers;
  std::uint64_t sum = 0;

  bool open(int sessions) {
    if (!client.open() || !server.open()) return false;
    for (int i = 0; i < sessions; ++i) {
      session::Session *a = client.add(true), *b = server.add(false);
      if (a == nullptr || b == nullptr) return false;
      const std::string why = a->connect(b->local_address());
      if (!why.empty() || !b->connect(a->local_address()).empty()) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return false;
      }
      numbers.push_back(a->number());
      if (i % 64 == 63) settle();
    }
    settle();
    return true;
  }
  void settle() {
    for (int i = 0; i < 200; ++i) {
      client.turn([](const std::int32_t*) {});
      server.turn([](const std::int32_t*) {});
    }
  }

  /// Makes this number of calls, one after another over all sessions, kInFlight of them at once.
  double ns_of_call(std::size_t calls) {
    std::size_t begun = 0, ended = 0;
    const auto begin = [&] {
      if (begun == calls) return;
      const std::size_t call = begun++;
      client.submit(boundary::SubOp::request, numbers[call % numbers.size()],
                    static_cast<std::uint32_t>((call / numbers.size()) % kCallsEach), 7);
    };
    const std::uint64_t from = now_ns();
    for (int i = 0; i < kInFlight; ++i) begin();
    client.context().flush();
    while (ended < calls) {
      server.turn([&](const std::int32_t* words) {
        if (words[ev::kind] != static_cast<std::int32_t>(boundary::EvKind::request)) return;
        sum += static_cast<std::uint64_t>(words[ev::offset]);
        server.submit(boundary::SubOp::response, static_cast<std::uint32_t>(words[ev::session]),
                      static_cast<std::uint32_t>(words[ev::call]), 0);
      });
      client.turn([&](const std::int32_t* words) {
        if (words[ev::kind] != static_cast<std::int32_t>(boundary::EvKind::settled)) return;
        ++ended;
        begin();
      });
    }
    return static_cast<double>(now_ns() - from) / static_cast<double>(calls);
  }
};

void clear_referenced() { std::ofstream("/proc/self/clear_refs") << 1; }
/// Returns the size of the pages that have been touched since clear_referenced(), in KiB.
long referenced_kib(bool shared) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool is_shared = false;
  long sum = 0;
  while (std::getline(maps, line)) {
    if (line.find("-") != std::string::npos && line.find(" ") > 20 && line.find(":") > line.find(" ")) {
      is_shared = line[line.find(' ') + 4] == 's';
    } else if (line.rfind("Referenced:", 0) == 0 && is_shared == shared) {
      sum += std::atol(line.c_str() + 11);
    }
  }
  return sum;
}

bool measure(int sessions) {
  Load load;
  if (!load.open(sessions)) return false;
  const std::size_t calls = std::max<std::size_t>(100'000, static_cast<std::size_t>(sessions) * 100);
  load.ns_of_call(calls);
  std::vector<double> ns;
  for (int i = 0; i < 9; ++i) ns.push_back(load.ns_of_call(calls));
  std::sort(ns.begin(), ns.end());
  clear_referenced();
  load.ns_of_call(static_cast<std::size_t>(sessions));
  const long own = referenced_kib(false), shared = referenced_kib(true);
  std::printf("%5d sessions: %6.0f ns a call, best %6.0f; pages a call: ", sessions, ns[ns.size() / 2],
              ns[0]);
  // Each call touches some pages on both sides. On some machines, the kernel does not notice this.
  if (shared / 4 < sessions) {
    std::printf("not known to this kernel\n");
  } else {
    std::printf("%.1f own, %.1f shared\n", static_cast<double>(own) / 4 / sessions,
                static_cast<double>(shared) / 4 / sessions);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> counts{10, 100, 1000};
  if (argc > 1) counts.clear();
  for (int i = 1; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  for (const int count : counts) {
    if (count < kSessionsMin) {
      std::fprintf(stderr, "many_sessions: at least %d sessions, for %d calls under way\n", kSessionsMin,
                   kInFlight);
      return 1;
    }
    if (!measure(count)) return 1;
  }
  return 0;
}

// Measures the cost that the flight recorder and its probes, without an attached tracer, add to a call on one
// of its sides. Rounds with and without them run in turn. The result is the difference as a share of a
// microsecond, which is the time of a call at a million calls per second. The goal is 1 %. The rows are those
// of a call in a batch of 16. The program walks through the whole ring, so the time includes the ring's own
// cache misses. It does not include the cache misses of other code whose data the ring evicts.
// Run it by hand:
//
//   build/bench/recorder [ROUNDS]     default 31
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "session/wire.h"
#include "telemetry/recorder.h"

namespace {

using namespace rdma_rpc;

constexpr std::uint32_t kCalls = 1 << 20, kBatch = 16;
constexpr double kCallNs = 1000, kMostPercent = 1;

/// The client's rows of a call: a request, its answer and its end. The rows for posts and completions occur
/// once in a batch.
template <bool kRecords>
double ns_of_call(const telemetry::Recorder& recorder) {
  session::wire::Header header{};
  const auto before = std::chrono::steady_clock::now();
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    header.call = call;
    // This hides the contents from the compiler, with and without the recorder.
    __asm__ volatile("" : "+m"(header));
    if constexpr (kRecords) {
      recorder.frame_out(header, 64);
      if (call % kBatch == 0) {
        recorder.post(kBatch, kBatch);
        recorder.completion(0, call);
      }
      recorder.frame_in(header, 64);
      recorder.settle(call, header.method, true, 20);
    }
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
  return took.count() / kCalls;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = std::max(1, argc > 1 ? std::atoi(argv[1]) : 31);
  std::vector<telemetry::EventRow> rows(std::size_t{telemetry::kEventRows} * telemetry::kEventRings);
  std::vector<std::uint64_t> counts(telemetry::kEventRings);
  const std::uint64_t now_ns = 1;
  const telemetry::Recorder recorder({rows.data(), counts.data()}, now_ns, 4096, 0);
  std::vector<double> percent;
  for (int round = 0; round < rounds; ++round) {
    const double without = ns_of_call<false>(recorder);
    percent.push_back(100 * (ns_of_call<true>(recorder) - without) / kCallNs);
  }
  std::sort(percent.begin(), percent.end());
  const double middle = percent[percent.size() / 2];
  std::printf("recorder and probes: %.2f %% of a call at 1,000,000 calls/s (%.2f to %.2f in %d rounds): %s\n",
              middle, percent.front(), percent.back(), rounds, middle <= kMostPercent ? "reached" : "missed");
  return 0;
}

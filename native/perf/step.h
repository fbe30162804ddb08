// What one step of a test is, and what came of it. Written by the binding from what JS says, read by the
// loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/endpoint.h"

namespace rdma_rpc::perf {

/// Of all steps of a test. Both sides have the same, but for `active`.
struct PairOptions {
  bool active = true;
  std::uint32_t queue_pairs = 1;
  std::uint32_t depth = 128;          ///< requests in flight on a queue pair
  std::uint32_t receive_depth = 512;  ///< receives posted on one
  std::uint32_t bytes_max = 65536;    ///< of a message, in any step
  std::uint32_t inline_max = 0;
  bool validate = false;  ///< each message is filled before it is sent, and looked at when it has come
  bool events = false;    ///< sleeps while nothing comes, instead of looking again at once
  std::uint64_t seed = 1;
};

struct Step {
  Verb verb = Verb::send;
  bool latency = true;  ///< one message at a time; else bandwidth
  /// This side sends, and measures. In latency tests the passive side answers, or is read and written.
  bool measures = true;
  bool receives = true;  ///< the peer sends to this side, too
  std::uint32_t bytes = 2;
  std::uint64_t messages = 1000;  ///< on each queue pair; with `duration_ns` no more than that
  std::uint64_t duration_ns = 0;  ///< 0: until all messages are through
  std::uint32_t signal_every = 1;
  std::uint32_t post_list = 1;  ///< requests with one doorbell
};

struct CpuTime {
  std::uint64_t user_ns = 0, system_ns = 0;
};

struct Outcome {
  std::string error;  ///< empty: it went through
  std::uint64_t messages = 0, received = 0, elapsed_ns = 0;
  CpuTime cpu;  ///< of the whole process, kernel included, while it was measured
  /// Latency without a duration: of each message, half of a round trip where the peer answers.
  std::vector<std::uint32_t> latency_ns;
  /// The quickest span of messages, as perftest looks for it: nanoseconds for each message. 0: not looked
  /// for.
  double peak_ns = 0;
  std::uint64_t corrupt = 0;  ///< messages that were not what was sent
  std::string first_corrupt;  ///< which, where
};

}  // namespace rdma_rpc::perf

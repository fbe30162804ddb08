// Defines the parameters of one step of a test, and its result. The binding fills them in with values from
// JS, and the loops read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/endpoint.h"

namespace rdma_rpc::perf {

/// Options that hold for all steps of a test. Both sides have the same options, except for `active`.
struct PairOptions {
  bool active = true;
  std::uint32_t queue_pairs = 1;
  std::uint32_t depth = 128;          ///< requests in flight on a queue pair
  std::uint32_t receive_depth = 512;  ///< receives posted on a queue pair
  std::uint32_t bytes_max = 65536;    ///< limit of a message's size, in any step
  std::uint32_t inline_max = 0;
  bool validate = false;  ///< each message is filled before it is sent, and checked when it has arrived
  Transport transport = Transport::rc;
  bool shared_receives = false;  ///< the queue pairs of a side use receives of one queue
  bool multicast = false;        ///< UD: messages are sent to a group that both sides have joined
  bool events = false;           ///< sleeps while nothing arrives, instead of polling
  std::uint64_t seed = 1;
};

struct Step {
  Verb verb = Verb::send;
  bool latency = true;  ///< one message at a time; otherwise a bandwidth test
  /// This side sends and measures. In latency tests the passive side answers, or its memory is read and
  /// written.
  bool measures = true;
  bool receives = true;  ///< the peer also sends to this side
  std::uint32_t bytes = 2;
  std::uint64_t messages = 1000;  ///< on each queue pair; an upper limit when `duration_ns` is set
  std::uint64_t duration_ns = 0;  ///< 0 when the step ends with its last message
  std::uint32_t signal_every = 1;
  std::uint32_t post_list = 1;  ///< requests per doorbell
};

struct CpuTime {
  std::uint64_t user_ns = 0, system_ns = 0;
};

struct Outcome {
  std::string error;  ///< empty on success
  std::uint64_t messages = 0, received = 0, elapsed_ns = 0;
  CpuTime cpu;  ///< of the whole process, including the kernel, during the measurement
  /// The latency of each message, in ns, for latency tests without a duration. The latency is half of a round
  /// trip if the peer answers.
  std::vector<std::uint32_t> latency_ns;
  /// Nanoseconds per message in the fastest span, found as perftest does; 0 when not measured.
  double peak_ns = 0;
  std::uint64_t corrupt = 0;  ///< messages whose content is wrong
  std::string first_corrupt;  ///< which message was wrong, and where
};

}  // namespace rdma_rpc::perf

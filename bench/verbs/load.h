// The loads of the benchmark: the client's requests and the server's answers. bench/verbs/session.cc uses
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "end.h"

namespace rdma_rpc::bench {

enum class Load : std::uint8_t {
  pingpong,  ///< 64 bytes back and forth, one call at a time
  read,      ///< the server READs 1 MiB of each request, 8 calls in flight
  write,     ///< the server WRITEs 1 MiB into the reply buffer of each request, 8 calls in flight
  /// 64 bytes back and forth, one call at a time, while the server READs or WRITEs 16 MiB for another call.
  beside_read,
  beside_write,
  /// The given number of bytes back and forth, one call at a time, in as many SENDs as they need, or by READ
  /// and WRITE.
  echo_sent,
  echo_moved,
};
std::optional<Load> load_of(std::string_view name);

/// Answers until the process is killed. `bytes` is the size of each message of echo_sent and echo_moved.
[[noreturn]] void serve(End& end, Load load, std::size_t bytes);

/// The times of one run, in nanoseconds.
struct Timing {
  std::uint64_t begin_ns = 0;
  std::vector<std::uint64_t> call_ns;  ///< how long each call took
  std::uint64_t end_ns = 0;
  std::uint64_t bytes = 0;  ///< bytes of the calls that have ended; in a load with large calls, only of these
};
/// Makes `calls` calls of the measured kind, and the load's other calls beside them, which are not counted.
Timing ask(End& end, Load load, std::size_t bytes, std::size_t calls);

}  // namespace rdma_rpc::bench

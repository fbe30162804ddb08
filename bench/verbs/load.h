// The loads of the benchmark, as what the client asks and what the server answers. Used by
// bench/verbs/session.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "end.h"

namespace rdma_rpc::bench {

enum class Load : std::uint8_t {
  pingpong,  ///< 64 bytes there and back, one call at a time
  read,      ///< the server READs 1 MiB of each request, 8 calls in flight
  write,     ///< the server WRITEs 1 MiB into the sink of each request, 8 calls in flight
  /// 64 bytes there and back, one call at a time, while the server READs or WRITEs 16 MiB for another one.
  beside_read,
  beside_write,
  /// So many bytes there and back, one call at a time: in as many SENDs as they take, or by READ and WRITE.
  echo_sent,
  echo_moved,
};
std::optional<Load> load_of(std::string_view name);

/// Answers until the process is killed. `bytes`: of each message of echo_sent and echo_moved.
[[noreturn]] void serve(End& end, Load load, std::size_t bytes);

/// Makes `calls` calls, those beside them not counted, and returns when each ended, in nanoseconds: first the
/// time of the first submission.
struct Timing {
  std::uint64_t begin_ns = 0;
  std::vector<std::uint64_t> call_ns;  ///< how long each took
  std::uint64_t end_ns = 0;
  std::uint64_t bytes = 0;  ///< of those that have ended; of large ones where there are any
};
Timing ask(End& end, Load load, std::size_t bytes, std::size_t calls);

}  // namespace rdma_rpc::bench

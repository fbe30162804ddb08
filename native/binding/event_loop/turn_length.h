// Limits how long a turn of the pump may last, on the JS thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rdma_rpc::binding {

/// Shortest limit of a turn. After a turn the event loop can serve sockets and timers.
inline constexpr std::uint64_t kTurnMinNs = 100'000;
/// Longest limit of a turn, even if the loop was busy elsewhere for longer, because timers become due.
inline constexpr std::uint64_t kTurnMaxNs = 10'000'000;
/// After a turn, other work of the thread may take as long as this number of turns.
inline constexpr std::uint64_t kOthersShare = 4;

/// Returns how long a turn may last when the last one ended `away_ns` ago. If other work takes 20 ms of each
/// iteration, a turn of a fixed length would answer only a few of the calls that have arrived in that time,
/// and the other calls would wait for one more iteration. A turn whose length is in proportion to that time
/// answers all of these calls, and still leaves most of the thread's time to other work. A turn ends earlier
/// when there is nothing more to do.
constexpr std::uint64_t turn_max_ns(std::uint64_t away_ns) {
  return std::clamp(away_ns / kOthersShare, kTurnMinNs, kTurnMaxNs);
}

}  // namespace rdma_rpc::binding

// How long a turn of the pump may last, on the JS thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rdma_rpc::binding {

/// Then the event loop gets a chance to serve sockets and timers.
inline constexpr std::uint64_t kTurnMinNs = 100'000;
/// Not longer, however long the loop was away: timers are due meanwhile.
inline constexpr std::uint64_t kTurnMaxNs = 10'000'000;
/// The others get this many times as long as a turn lasts.
inline constexpr std::uint64_t kOthersShare = 4;

/// The longest time that a turn may last when the last one ended `away_ns` ago. Beside other work that takes
/// 20 ms of each iteration, a turn of a fixed length would answer only a few of the calls that have come
/// meanwhile, and each of the rest would wait for one iteration more. A turn in proportion to that answers
/// them and still leaves the thread to the others for most of the time. It ends earlier when there is nothing
/// more to do.
constexpr std::uint64_t turn_max_ns(std::uint64_t away_ns) {
  return std::clamp(away_ns / kOthersShare, kTurnMinNs, kTurnMaxNs);
}

}  // namespace rdma_rpc::binding

// How far the requests of a send queue have come, by ever-growing index. Part of the send queues of sim and
// tcp, on the device's thread.
//
//   freed ≤ retired ≤ started ≤ posted
//   [freed, retired)    reported, or carried out without a signal; its slot comes back when that completion,
//   or a
//                       later one, is polled
//   [retired, started)  begun: its effect is there, or is on its way; not yet reported
//   [started, posted)   waits for its turn; the first one may be on its way in part
#pragma once

#include <bit>
#include <cstdint>

namespace rdma_rpc::fabric::software {

struct SendIndices {
  /// Of a queue with room for so many requests.
  explicit SendIndices(std::uint32_t limit) : limit(limit), mask(std::bit_ceil(limit) - 1) {}

  bool is_full() const { return posted - freed == limit; }
  bool all_started() const { return started == posted; }
  /// Where the slot of an index is, in an array of slots() of them.
  std::uint64_t slot(std::uint64_t index) const { return index & mask; }
  std::size_t slots() const { return mask + 1; }

  const std::uint32_t limit;
  const std::uint64_t mask;
  std::uint64_t freed = 0, retired = 0, started = 0, posted = 0;
};

}  // namespace rdma_rpc::fabric::software

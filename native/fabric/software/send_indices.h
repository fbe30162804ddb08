// Records the progress of the requests in a send queue, by indices that only grow. The send queues of sim and
// tcp use them on the device's thread.
//
//   freed ≤ retired ≤ started ≤ posted
//   [freed, retired)    reported, or executed without a signal; its slot is free again when its completion,
//                       or a later one, has been polled
//   [retired, started)  begun: executed or in transit, not yet reported
//   [started, posted)   waits for its turn; the first one may be partly in transit
#pragma once

#include <bit>
#include <cstdint>

namespace rdma_rpc::fabric::software {

struct SendIndices {
  /// `limit` is the capacity of the queue.
  explicit SendIndices(std::uint32_t limit) : limit(limit), mask(std::bit_ceil(limit) - 1) {}

  bool is_full() const { return posted - freed == limit; }
  bool all_started() const { return started == posted; }
  /// Returns the slot of an index, in an array of slots() elements.
  std::uint64_t slot(std::uint64_t index) const { return index & mask; }
  std::size_t slots() const { return mask + 1; }

  const std::uint32_t limit;
  const std::uint64_t mask;
  std::uint64_t freed = 0, retired = 0, started = 0, posted = 0;
};

}  // namespace rdma_rpc::fabric::software

// Defines the layout of the messages in the memory of an endpoint. The layout is the same on both sides,
// because each side writes to and reads from the other's memory. Each queue pair has slots to send from,
// slots to receive in, and single words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "perf/step.h"

namespace rdma_rpc::perf {

class Layout {
 public:
  explicit Layout(const PairOptions& options, std::uint32_t header_bytes = 0)
      : stride_(round_up(options.bytes_max + header_bytes)),
        slots_(slots(options, stride_)),
        each_((2 * slots_ * stride_ + 4 * kLine + kPage - 1) / kPage * kPage) {}

  /// Without validation a queue pair has a few slots on the same pages, which stay in the caches like those
  /// of perftest. With validation a queue pair has a slot for each message in flight, if the memory limit
  /// allows it.
  std::uint64_t slots() const { return slots_; }
  std::size_t bytes(std::uint32_t queue_pairs) const { return queue_pairs * each_; }

  std::uint64_t out(std::uint32_t queue_pair, std::uint64_t message) const {
    // A division would take longer than everything else here.
    return queue_pair * each_ + (message < slots_ ? message : message % slots_) * stride_;
  }
  std::uint64_t in(std::uint32_t queue_pair, std::uint64_t message) const {
    return out(queue_pair, message) + slots_ * stride_;
  }
  /// Returns the offset of the word in which the peer writes the number of messages that it has received.
  std::uint64_t taken(std::uint32_t queue_pair) const { return queue_pair * each_ + 2 * slots_ * stride_; }
  /// Returns the offset of the word from which that number is written to the peer.
  std::uint64_t taken_here(std::uint32_t queue_pair) const { return taken(queue_pair) + kLine; }
  /// Returns the offset of the operand of the peer's atomic operations.
  std::uint64_t counter(std::uint32_t queue_pair) const { return taken(queue_pair) + 2 * kLine; }
  /// Returns the offset of the first message of a new connection.
  std::uint64_t connect_message(std::uint32_t queue_pair) const { return taken(queue_pair) + 3 * kLine; }

 private:
  static constexpr std::uint64_t kLine = 64, kPage = 4096;
  static constexpr std::uint64_t kCheckedBytes = 64 << 20;

  static std::uint64_t round_up(std::uint64_t bytes) {
    return std::max<std::uint64_t>(kLine, (bytes + kLine - 1) / kLine * kLine);
  }
  static std::uint64_t slots(const PairOptions& options, std::uint64_t stride) {
    if (!options.validate) return std::max<std::uint64_t>(1, kPage / stride);
    const std::uint64_t wanted = std::max(options.depth, options.receive_depth);
    return std::clamp<std::uint64_t>(kCheckedBytes / stride / options.queue_pairs, 2,
                                     std::max<std::uint64_t>(2, wanted));
  }

  std::uint64_t stride_, slots_, each_;
};

}  // namespace rdma_rpc::perf

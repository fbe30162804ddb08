// Keeps the posted receives of one queue pair, or of the queue pairs that share them, oldest first. This file
// is used by sim and tcp, on the device's thread.
//
//   freed ≤ used ≤ posted (indices that only grow)
//   [freed, used)   has its message, or will never get one; its slot is free again when its completion has
//                   been polled
//   [used, posted)  waits for a message
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::software {

class ReceiveRing {
 public:
  /// `limit` is the capacity. The capacity is 0 for a queue pair that uses shared receives.
  explicit ReceiveRing(std::uint32_t limit) : limit_(limit), slots_(std::bit_ceil(std::max(limit, 1u))) {}

  /// Posts in order, as many as fit. Returns the number of receives posted.
  std::size_t post(std::span<const RecvWr> requests) {
    const std::size_t taken = std::min<std::size_t>(requests.size(), limit_ - (posted_ - freed_));
    for (const RecvWr& wr : requests.first(taken)) slots_[posted_++ & (slots_.size() - 1)] = wr;
    return taken;
  }
  bool is_empty() const { return used_ == posted_; }
  const RecvWr& oldest() const { return slots_[used_ & (slots_.size() - 1)]; }
  std::uint32_t unused() const { return static_cast<std::uint32_t>(posted_ - used_); }
  /// Marks the oldest `count` receives as used, because they have their message or will never get one.
  void use(std::uint32_t count) { used_ += count; }
  /// Frees the slots of all used receives.
  void free_used() { freed_ = used_; }
  /// Frees the slots of `count` receives whose completions have been polled.
  void freed(std::uint64_t count) { freed_ += count; }

 private:
  const std::uint32_t limit_;
  std::vector<RecvWr> slots_;
  std::uint64_t freed_ = 0, used_ = 0, posted_ = 0;
};

}  // namespace rdma_rpc::fabric::software

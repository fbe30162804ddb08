// The receives that a queue pair has posted, oldest first. Used by the queue pair, on the device's thread.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::tcp {

class ReceiveQueue {
 public:
  explicit ReceiveQueue(std::uint32_t limit) : limit_(limit), places_(std::bit_ceil(limit)) {}

  bool is_full() const { return posted_ - freed_ == limit_; }
  bool is_empty() const { return used_ == posted_; }
  void post(const RecvWr& wr) { at(posted_++) = wr; }
  const RecvWr& oldest() const { return places_[used_ & (places_.size() - 1)]; }
  std::uint32_t unused() const { return static_cast<std::uint32_t>(posted_ - used_); }
  /// So many of the oldest ones are complete.
  void use(std::uint32_t count) { used_ += count; }
  /// The completion of so many has been polled.
  void freed(std::uint32_t count) { freed_ += count; }

 private:
  RecvWr& at(std::uint64_t index) { return places_[index & (places_.size() - 1)]; }

  const std::uint32_t limit_;
  std::vector<RecvWr> places_;
  std::uint64_t freed_ = 0, used_ = 0, posted_ = 0;
};

}  // namespace rdma_rpc::fabric::tcp

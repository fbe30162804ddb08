// Receives of the simulated fabric, in the order posted: those of one queue pair, or of a shared receive
// queue. On the world's thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/receive_queue.h"
#include "fabric/sim/completion_queue.h"
#include "fabric/sim/device.h"

namespace rdma_rpc::fabric {

class SimReceives {
 public:
  explicit SimReceives(std::uint32_t most) : most_(most), slots_(std::bit_ceil(std::max(most, 1u))) {}

  std::size_t post(std::span<const RecvWr> requests) {
    const std::size_t taken = std::min<std::size_t>(requests.size(), most_ - (posted_ - freed_));
    for (const RecvWr& wr : requests.first(taken)) at(posted_++) = wr;
    return taken;
  }
  bool empty() const { return used_ == posted_; }
  const RecvWr& oldest() const { return slots_[used_ & (slots_.size() - 1)]; }
  /// The oldest one has its message, or never will.
  void take() { ++used_; }
  /// The completions of so many have been polled.
  void free(std::uint64_t count) { freed_ += count; }

 private:
  RecvWr& at(std::uint64_t index) { return slots_[index & (slots_.size() - 1)]; }

  const std::uint32_t most_;
  std::vector<RecvWr> slots_;
  std::uint64_t posted_ = 0, used_ = 0, freed_ = 0;
};

class SimReceiveQueue final : public ReceiveQueue {
 public:
  SimReceiveQueue(SimDevice& device, SimCompletionQueue& cq, std::uint32_t capacity)
      : ReceiveQueue(capacity), receives(capacity), device_(device), cq_(cq) {
    cq_.make_room(capacity);
    cq_.shares_receives = true;
    ++device_.live.receive_queues;
  }
  ~SimReceiveQueue() override {
    cq_.give_room_back(capacity_);
    cq_.shares_receives = false;
    --device_.live.receive_queues;
  }
  std::size_t post(std::span<const RecvWr> requests) override { return receives.post(requests); }

  SimReceives receives;

 private:
  SimDevice& device_;
  SimCompletionQueue& cq_;
};

}  // namespace rdma_rpc::fabric

// Implements a shared receive queue of the simulated fabric. This code runs on the world's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fabric/receive_queue.h"
#include "fabric/sim/completion_queue.h"
#include "fabric/sim/device.h"
#include "fabric/software/receive_ring.h"

namespace rdma_rpc::fabric {

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
  std::string arm_limit(std::uint32_t count) override {
    if (count > capacity_)
      return "a limit of " + std::to_string(count) + " is beyond the receive queue's " +
             std::to_string(capacity_) + " receives";
    limit_ = count;
    look_at_limit();
    return {};
  }
  /// Must be called after receives have been used.
  void look_at_limit() {
    if (receives.unused() >= limit_) return;
    limit_ = 0;
    device_.note_event({.kind = AsyncEvent::Kind::srq_limit_reached, .receives = this});
    cq_.announce();
  }

  software::ReceiveRing receives;

 private:
  SimDevice& device_;
  SimCompletionQueue& cq_;
  std::uint32_t limit_ = 0;  ///< 0 when no event is wanted
};

}  // namespace rdma_rpc::fabric

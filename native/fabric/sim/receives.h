// A shared receive queue of the simulated fabric. On the world's thread.
#pragma once

#include <cstdint>
#include <span>

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

  software::ReceiveRing receives;

 private:
  SimDevice& device_;
  SimCompletionQueue& cq_;
};

}  // namespace rdma_rpc::fabric

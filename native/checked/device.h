// Implements an open device and the objects that it creates: regions, completion queues and queue pairs. The
// users of these objects may make mistakes, so everything is checked. Each object keeps the objects that it
// needs alive: a region keeps its memory, a queue pair keeps its completion queue, a posted request keeps its
// regions, and all of them keep the device. The objects can therefore be released in any order. This file is
// used by the binding, on the JS thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checked/address_handles.h"
#include "checked/completion_queue.h"
#include "checked/queue_pair.h"
#include "checked/refusal.h"
#include "checked/region.h"
#include "checked/shared_receives.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

class Device {
 public:
  explicit Device(std::shared_ptr<fabric::Device> device)
      : device_(std::move(device)),
        resources_{std::make_shared<Regions>(), std::make_shared<AddressHandles>(),
                   std::make_shared<Windows>()} {}

  const fabric::Capabilities& capabilities() const { return device_->capabilities(); }
  const std::shared_ptr<fabric::Device>& on_device() const { return device_; }

  Refusal reg_mr(Memory memory, std::uint32_t access, Ref<Region>* region);
  /// Closes the region, so that later requests may not name it. The region stays registered until the posted
  /// requests that use it have completed.
  void close(const Region& region) { resources_.regions->remove(region); }
  Refusal create_cq(std::uint32_t entries, std::shared_ptr<CompletionQueue>* cq);
  /// Creates a shared receive queue. The fabric has one such queue for each completion queue.
  Refusal create_srq(std::shared_ptr<CompletionQueue> cq, std::uint32_t receives,
                     std::shared_ptr<SharedReceives>* srq);
  Refusal create_ah(const fabric::AhAttr& attr, std::uint32_t* number);
  Refusal alloc_mw(std::uint32_t* number);
  void close_mw(std::uint32_t number) { resources_.windows->remove(number); }
  /// Returns null for a window that was closed, or that never existed.
  const Window* window(std::uint32_t number) const { return resources_.windows->find(number); }
  void close_ah(std::uint32_t number) { resources_.handles->remove(number); }
  Refusal create_qp(std::shared_ptr<CompletionQueue> cq, const QueuePairOptions& options,
                    std::shared_ptr<QueuePair>* qp);

 private:
  std::shared_ptr<fabric::Device> device_;
  Resources resources_;
};

}  // namespace rdma_rpc::checked

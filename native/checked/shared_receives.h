// Implements a shared receive queue that checks its receives before a device gets them. The receives complete
// in any order, because several queue pairs use them, each in its own order. Device makes these objects, and
// the binding uses them, on the JS thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "checked/completion_queue.h"
#include "checked/outstanding.h"
#include "checked/refusal.h"
#include "checked/request_reader.h"
#include "fabric/receive_queue.h"

namespace rdma_rpc::checked {

class SharedReceives {
 public:
  SharedReceives(std::shared_ptr<CompletionQueue> cq, const Resources& resources,
                 const fabric::Capabilities& capabilities, std::unique_ptr<fabric::ReceiveQueue> queue);
  ~SharedReceives();
  SharedReceives(const SharedReceives&) = delete;
  SharedReceives& operator=(const SharedReceives&) = delete;

  fabric::ReceiveQueue& on_device() { return *queue_; }
  const CompletionQueue* cq() const { return cq_.get(); }
  std::uint32_t room() const { return static_cast<std::uint32_t>(slots_.free.size()); }
  /// Posts `count` receives, as QueuePair::post_recv() does.
  Refusal post(std::span<const double> rows, std::size_t count, double stamp);

 private:
  struct Slots final : Source {
    explicit Slots(std::uint32_t depth);
    Request complete(std::uint32_t slot) override;

    struct Slot {
      Request request;
      Kept kept;
    };
    std::vector<Slot> slots;
    std::vector<std::uint32_t> free;
  };

  std::shared_ptr<CompletionQueue> cq_;
  RequestReader reader_;
  Slots slots_;
  std::uint32_t source_;
  std::unique_ptr<fabric::ReceiveQueue> queue_;
};

}  // namespace rdma_rpc::checked

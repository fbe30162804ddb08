// A device that does all that another one does, except where a hook says otherwise: a resource refused, or
// something that happens at a certain work request. For faults that no device makes on demand. On the thread
// of its context.
#pragma once

#include <functional>
#include <memory>

#include "fabric/fabric.h"

namespace rdma_rpc::session::test {

struct Hooks {
  /// False: this resource is refused. Called for each memory, region, window, completion queue, queue pair.
  std::function<bool()> grant = [] { return true; };
  /// Called before and after each request of a send queue is posted; with these, each has a doorbell of its
  /// own.
  std::function<void(const fabric::SendWr&)> before, after;
  /// Of so many requests that are posted at once, how many the send queue takes.
  std::function<std::size_t(std::span<const fabric::SendWr>)> takes;
  /// What this side has sent is polled before what it has received, whichever came first: as shm has it.
  bool sends_first = false;
};

class HookedDevice final : public fabric::Device {
 public:
  HookedDevice(std::shared_ptr<fabric::Device> device, std::shared_ptr<const Hooks> hooks)
      : device_(std::move(device)), hooks_(std::move(hooks)) {}
  const fabric::Capabilities& capabilities() const override { return device_->capabilities(); }
  std::unique_ptr<fabric::HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) override;
  std::unique_ptr<fabric::MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                               std::string* error) override;
  std::unique_ptr<fabric::MemoryWindow> alloc_mw() override;
  std::unique_ptr<fabric::CompletionQueue> create_cq(std::uint32_t entries) override;
  std::unique_ptr<fabric::QueuePair> create_qp(fabric::CompletionQueue& cq, const fabric::QpOptions& options,
                                               std::string* error) override;
  fabric::DeviceCounters counters() const override { return device_->counters(); }

 private:
  std::shared_ptr<fabric::Device> device_;
  std::shared_ptr<const Hooks> hooks_;
};

}  // namespace rdma_rpc::session::test

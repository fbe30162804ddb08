// Implements a device that forwards everything to another device, except when a hook intervenes. A hook fails
// a resource, or acts at a certain work request. Hooks are for faults that no device produces on demand. This
// code runs on the thread of its context.
#pragma once

#include <functional>
#include <memory>

#include "fabric/fabric.h"

namespace rdma_rpc::session::test {

struct Hooks {
  /// Decides about each memory, region, window, completion queue and queue pair. Returns false to fail the
  /// resource.
  std::function<bool()> grant = [] { return true; };
  /// These functions are called before and after each request of a send queue is posted. With these hooks,
  /// each request has a doorbell of its own.
  std::function<void(const fabric::SendWr&)> before, after;
  /// Returns how many of the requests that are posted at once the send queue accepts.
  std::function<std::size_t(std::span<const fabric::SendWr>)> takes;
  /// When this is true, completions of this side's sends are polled before those of its receives, as on shm,
  /// even if a receive has completed first.
  bool sends_first = false;
  /// Changes a completion that has been polled. This hook cannot be combined with sends_first.
  std::function<void(fabric::Wc&)> polled;
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

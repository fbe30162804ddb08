// Keeps the memory windows of a device by number. A window gives one queue pair rights to a part of a region
// until the window is invalidated. A posted bind keeps its window alive. A window keeps alive the regions to
// which it may be bound. Device makes this table, and RC queue pairs use it, on the JS thread.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "checked/counted.h"
#include "checked/region.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

class Window final : public Counted {
 public:
  Window(std::shared_ptr<fabric::Device> device, std::unique_ptr<fabric::MemoryWindow> window)
      : device_(std::move(device)), window_(std::move(window)) {}
  fabric::MemoryWindow& on_device() const { return *window_; }
  /// Returns the key of the last bind that was posted, or 0 before the first bind.
  std::uint32_t rkey() const { return current_ == nullptr ? 0 : window_->rkey(); }
  /// Must be called when a bind is posted. A bind fails while the window is bound to another region, so that
  /// region is kept alive, too.
  void bound_to(Region* region) {
    if (region == current_.get()) return;
    previous_ = std::move(current_);
    current_ = Ref<Region>(region);
  }

 private:
  // Members are destroyed in reverse order, so that no window is bound to a region when the region is
  // released.
  std::shared_ptr<fabric::Device> device_;
  Ref<Region> previous_, current_;
  std::unique_ptr<fabric::MemoryWindow> window_;
};

class Windows {
 public:
  std::uint32_t add(Ref<Window> window) {
    windows_.emplace(++last_, std::move(window));
    return last_;
  }
  void remove(std::uint32_t number) { windows_.erase(number); }
  /// Returns null for a window that was closed, or that never existed.
  Window* find(std::uint32_t number) const {
    const auto found = windows_.find(number);
    return found == windows_.end() ? nullptr : found->second.get();
  }

 private:
  std::uint32_t last_ = 0;
  std::unordered_map<std::uint32_t, Ref<Window>> windows_;
};

}  // namespace rdma_rpc::checked

// A Region is registered memory. A posted request keeps a reference to the region of each of its
// scatter/gather entries, so a closed region stays registered until the last request that uses it has
// completed. Device makes these objects, and the queues use them, on the JS thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "fabric/fabric.h"

namespace rdma_rpc::checked {

/// Bytes to register, and the object that keeps them mapped.
struct Memory {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> owner;
};

class Region {
 public:
  Region(std::shared_ptr<fabric::Device> device, Memory memory, std::unique_ptr<fabric::MemoryRegion> region,
         std::uint32_t access)
      : device_(std::move(device)), memory_(std::move(memory)), region_(std::move(region)), access_(access) {}

  const fabric::MemoryRegion& on_device() const { return *region_; }
  bool allows(std::uint32_t access) const { return (access_ & access) == access; }
  /// Returns whether the region contains these bytes. The comparison is written so that no sum can overflow.
  bool contains(std::uint64_t addr, std::uint64_t bytes) const {
    const std::uint64_t start = region_->addr(), length = region_->length();
    return addr >= start && addr - start <= length && bytes <= length - (addr - start);
  }

 private:
  // Members are destroyed in reverse order: the registration ends before its memory and its device are
  // released.
  std::shared_ptr<fabric::Device> device_;
  Memory memory_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::uint32_t access_;
};

/// The open regions of a device by their local key.
class Regions {
 public:
  void add(std::shared_ptr<Region> region) { by_key_[region->on_device().lkey()] = std::move(region); }
  void remove(const Region& region) {
    if (last_.get() == &region) last_.reset();
    by_key_.erase(region.on_device().lkey());
  }
  /// Returns null for a key that no open region has.
  const std::shared_ptr<Region>& find(std::uint32_t lkey) {
    // Most programs use the same region again and again, so the last region is checked first.
    if (last_ != nullptr && last_->on_device().lkey() == lkey) return last_;
    const auto found = by_key_.find(lkey);
    if (found == by_key_.end()) return none_;
    return last_ = found->second;
  }

 private:
  std::unordered_map<std::uint32_t, std::shared_ptr<Region>> by_key_;
  std::shared_ptr<Region> last_;
  const std::shared_ptr<Region> none_;
};

}  // namespace rdma_rpc::checked

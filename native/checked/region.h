// A Region is registered memory. A posted request keeps a reference to the region of each of its
// scatter/gather entries, so a closed region stays registered until the last request that uses it has
// completed. Device makes these objects, and the queues use them, on the JS thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "checked/counted.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

/// Bytes to register, and the object that keeps them mapped.
struct Memory {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> owner;
};

class Region final : public Counted {
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
  void add(Ref<Region> region) {
    const std::uint32_t lkey = region->on_device().lkey();
    if (!by_key_.insert_or_assign(lkey, std::move(region)).second) removed();
  }
  void remove(const Region& region) {
    if (by_key_.erase(region.on_device().lkey()) > 0) removed();
  }
  /// Returns null for a key that no open region has.
  Region* find(std::uint32_t lkey) {
    // Most programs use the same region again and again, so the last region is checked first.
    if (last_ != nullptr && last_->on_device().lkey() == lkey) return last_;
    const auto found = by_key_.find(lkey);
    if (found == by_key_.end()) return nullptr;
    return last_ = found->second.get();
  }
  /// Returns how many regions were removed so far.
  std::uint64_t removals() const { return removals_; }

 private:
  void removed() {
    last_ = nullptr;
    ++removals_;
  }

  std::unordered_map<std::uint32_t, Ref<Region>> by_key_;
  Region* last_ = nullptr;
  std::uint64_t removals_ = 0;
};

}  // namespace rdma_rpc::checked

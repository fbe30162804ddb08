// Regions and windows of a device that is made in software: handles on entries of its protection table. Made
// by the devices of sim and tcp, used on their thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fabric/fabric.h"
#include "fabric/software/key_table.h"

namespace rdma_rpc::fabric::software {

/// What a device has for its memory objects, which it outlives.
struct Protection {
  explicit Protection(std::uint32_t key_seed) : keys(key_seed) {}
  Protection(const Protection&) = delete;
  Protection& operator=(const Protection&) = delete;

  KeyTable keys;
  DeviceCounters counters;
};

class Region final : public MemoryRegion {
 public:
  /// `entry` is in the table under `key`.
  Region(Protection& protection, KeyEntry& entry, std::uint32_t key);
  ~Region() override;

 private:
  Protection& protection_;
};

class Window final : public MemoryWindow {
 public:
  explicit Window(Protection& protection);
  ~Window() override;

  /// A new key for a bind that is being posted; it gives no access before the bind has been carried out.
  /// Returns 0 when no key is left.
  std::uint32_t next_key();
  bool of(const Protection& protection) const { return &protection == &protection_; }

  std::uint32_t bound_key = 0;  ///< 0: not bound

 private:
  Protection& protection_;
};

/// Files memory that why_not_register() lets be registered. Null when no key is left, and `error` then says
/// so.
std::unique_ptr<MemoryRegion> register_memory(Protection& protection, void* addr, std::size_t length,
                                              std::uint32_t access, std::string* error);
/// Null when no key is left.
std::unique_ptr<MemoryWindow> alloc_window(Protection& protection);

}  // namespace rdma_rpc::fabric::software

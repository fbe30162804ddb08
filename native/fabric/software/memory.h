// Implements regions and windows of a software device: handles of entries in its protection table. The
// devices of sim and tcp make these objects and use them on their thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fabric/fabric.h"
#include "fabric/software/key_table.h"

namespace rdma_rpc::fabric::software {

/// State that a device shares with its memory objects. The memory objects must not outlive it.
struct Protection {
  explicit Protection(std::uint32_t key_seed) : keys(key_seed) {}
  Protection(const Protection&) = delete;
  Protection& operator=(const Protection&) = delete;

  KeyTable keys;
  DeviceCounters counters;
};

class Region final : public MemoryRegion {
 public:
  /// `entry` must already be in the table under `key`.
  Region(Protection& protection, KeyEntry& entry, std::uint32_t key);
  ~Region() override;

 private:
  Protection& protection_;
};

class Window final : public MemoryWindow {
 public:
  explicit Window(Protection& protection);
  ~Window() override;

  /// Returns a new key for a bind that is being posted. The key gives no access before the bind has been
  /// executed. Returns 0 when no key is left.
  std::uint32_t next_key();
  bool of(const Protection& protection) const { return &protection == &protection_; }

  std::uint32_t bound_key = 0;  ///< 0 when the window is not bound

 private:
  Protection& protection_;
};

/// Registers memory that why_not_register() has approved. Returns null, with the reason in `error`, when no
/// key is left.
std::unique_ptr<MemoryRegion> register_memory(Protection& protection, void* addr, std::size_t length,
                                              std::uint32_t access, std::string* error);
/// Creates an unbound window. Returns null when no key is left.
std::unique_ptr<MemoryWindow> alloc_window(Protection& protection);

}  // namespace rdma_rpc::fabric::software

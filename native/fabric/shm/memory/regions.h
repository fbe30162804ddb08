// Implements memory regions and windows: handles of entries in the protection table. The device makes these
// objects and uses them on its thread.
#pragma once

#include <cstdint>

#include "fabric/fabric.h"
#include "fabric/shm/memory/protection_table.h"

namespace rdma_rpc::fabric::shm {

class Device;

class Region final : public MemoryRegion {
 public:
  Region(Device& device, std::uint32_t index, const KeyEntry& key_entry);
  ~Region() override;

 private:
  Device& device_;
  std::uint32_t index_;
};

class Window final : public MemoryWindow {
 public:
  Window(Device& device, std::uint32_t index);
  ~Window() override;

  bool of(const Device& device) const { return &device == &device_; }
  bool bound() const;
  void bind(const KeyEntry& key_entry);

 private:
  Device& device_;
  std::uint32_t index_;
};

}  // namespace rdma_rpc::fabric::shm

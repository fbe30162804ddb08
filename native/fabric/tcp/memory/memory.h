// Memory, regions and windows: handles on entries of the protection table. Made by the device, used on its
// thread.
#pragma once

#include <cstdint>

#include "fabric/fabric.h"
#include "fabric/tcp/memory/keys.h"

namespace rdma_rpc::fabric::tcp {

class Device;

class PrivateMemory final : public HostMemory {
 public:
  PrivateMemory(void* data, std::size_t size) : HostMemory(mapped_pages(data, size), size) {}
};

class Region final : public MemoryRegion {
 public:
  Region(Device& device, const Grant& grant, std::uint32_t key);
  ~Region() override;

 private:
  Device& device_;
};

class Window final : public MemoryWindow {
 public:
  explicit Window(Device& device);
  ~Window() override;

  /// A new key for a bind that is being posted; it gives no access before the bind has been carried out. 0:
  /// no key is left.
  std::uint32_t next_key();
  bool of(const Device& device) const { return &device == &device_; }

  std::uint32_t bound_key = 0;  ///< 0: not bound

 private:
  Device& device_;
};

}  // namespace rdma_rpc::fabric::tcp

// Implements host memory and registered regions. Each object is counted in the device's counters while it
// exists. This code runs on the device's thread.
#pragma once

#include <memory>
#include <string>

#include "fabric/fabric.h"
#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

class WindowTable;

class Memory final : public HostMemory {
 public:
  /// Maps huge pages of 2 MiB where the system has free ones, this process may use them, and rounding up
  /// wastes little. Otherwise maps pages that the kernel may join later. Returns null when the system
  /// refuses. The pages come from the NUMA node `node` if possible; -1 stands for any node. The memory counts
  /// itself in `total`. The memory shares `total`, because leases may outlive a device that was removed.
  static std::unique_ptr<Memory> map(std::size_t bytes, int node, std::shared_ptr<std::uint64_t> total);
  ~Memory() override;

 private:
  Memory(std::shared_ptr<std::byte> pages, std::size_t bytes, std::shared_ptr<std::uint64_t> total);
  std::shared_ptr<std::uint64_t> total_;
};

class Region final : public MemoryRegion {
 public:
  /// `addr` is the address that requests use for the first byte. For a dmabuf it is not the address at which
  /// the memory is mapped.
  Region(MrPtr mr, std::uint64_t addr, std::uint32_t access, WindowTable& windows, DeviceCounters& counters);
  ~Region() override;
  ibv_mr* get() const { return mr_.get(); }
  std::uint32_t access() const { return access_; }
  /// Number of windows that are bound to this region.
  mutable std::uint32_t windows_bound = 0;

 private:
  MrPtr mr_;
  std::uint32_t access_;
  WindowTable& windows_;
  DeviceCounters& counters_;
};

/// A registration in two steps, because pinning the pages may take long and can be done on another thread.
class Pinning final : public Registration {
 public:
  /// `refusal` is the reason, if it is known in advance that the registration fails. `optional` are rights
  /// that the driver may ignore or refuse.
  Pinning(ibv_pd* pd, void* addr, std::size_t length, std::uint32_t access, unsigned optional,
          std::string refusal, const std::string& device, WindowTable& windows, DeviceCounters& counters);
  void pin() override;
  std::unique_ptr<MemoryRegion> finish(std::string* error) override;
  /// Returns whether the kernel refuses this memory for a reason other than a limit. Valid after pin().
  bool refused_for_the_memory() const;

 private:
  ibv_pd* pd_;
  void* addr_;
  std::size_t length_;
  std::uint32_t access_;
  unsigned optional_;
  std::string refusal_;
  const std::string& device_;
  WindowTable& windows_;
  DeviceCounters& counters_;
  MrPtr mr_;
  int error_ = 0;
};

}  // namespace rdma_rpc::fabric::verbs

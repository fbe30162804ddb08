// Implements a device on which only memory registration works, which is enough for the arena and the
// registration cache. The device counts the open resources. It fails requests by number (the n-th call), by
// total (a limit of locked memory) or by size.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "fabric/fabric.h"

namespace rdma_rpc::memory {

class FakeDevice final : public fabric::Device {
 public:
  FakeDevice() {
    capabilities_.name = "fake";
    capabilities_.windows = true;
    capabilities_.pins_memory = true;
  }

  std::uint64_t refuse_alloc = 0;  ///< the n-th alloc_memory() fails, counted from 1; 0 when none fails
  std::uint64_t refuse_reg = 0;    ///< the n-th reg_mr() fails; 0 when none fails
  std::uint64_t lock_limit_bytes = ~std::uint64_t{0};   ///< limit of the bytes registered at the same time
  std::uint64_t alloc_limit_bytes = ~std::uint64_t{0};  ///< limit of one alloc_memory()
  std::uint64_t allocs = 0, regs = 0;
  std::uint64_t memory_bytes = 0, registered_bytes = 0, regions = 0;
  std::uint32_t last_access = 0;
  fabric::Capabilities capabilities_;

  const fabric::Capabilities& capabilities() const override { return capabilities_; }

  std::unique_ptr<fabric::HostMemory> alloc_memory(std::size_t bytes, std::string_view) override {
    refusal_ = "no more than " + std::to_string(alloc_limit_bytes) + " bytes";
    if (++allocs == refuse_alloc || bytes > alloc_limit_bytes) return nullptr;
    return std::make_unique<Memory>(*this, bytes);
  }

  std::unique_ptr<fabric::MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                               std::string* error) override {
    last_access = access;
    if (++regs == refuse_reg || length > lock_limit_bytes - registered_bytes) {
      *error = "RLIMIT_MEMLOCK is " + std::to_string(lock_limit_bytes);
      return nullptr;
    }
    return std::make_unique<Region>(*this, addr, length);
  }

  std::unique_ptr<fabric::Registration> begin_reg_mr(void* addr, std::size_t length,
                                                     std::uint32_t access) override {
    return std::make_unique<Slow>(*this, addr, length, access);
  }

  std::unique_ptr<fabric::MemoryWindow> alloc_mw() override { return nullptr; }
  std::unique_ptr<fabric::CompletionQueue> create_cq(std::uint32_t) override { return nullptr; }
  std::unique_ptr<fabric::QueuePair> create_qp(fabric::CompletionQueue&, const fabric::QpOptions&,
                                               std::string*) override {
    return nullptr;
  }
  fabric::DeviceCounters counters() const override {
    return {.memory_regions = regions, .memory_bytes = memory_bytes};
  }

 private:
  class Memory final : public fabric::HostMemory {
   public:
    Memory(FakeDevice& device, std::size_t bytes)
        : HostMemory({static_cast<std::byte*>(std::aligned_alloc(4096, bytes)), std::free}, bytes),
          device_(device) {
      std::memset(data(), 0, bytes);
      device_.memory_bytes += bytes;
    }
    ~Memory() override { device_.memory_bytes -= size(); }

   private:
    FakeDevice& device_;
  };

  class Slow final : public fabric::Registration {
   public:
    Slow(FakeDevice& device, void* addr, std::size_t length, std::uint32_t access)
        : device_(device), addr_(addr), length_(length), access_(access) {}
    void pin() override {}
    std::unique_ptr<fabric::MemoryRegion> finish(std::string* error) override {
      std::string why;
      return device_.reg_mr(addr_, length_, access_, error != nullptr ? error : &why);
    }

   private:
    FakeDevice& device_;
    void* addr_;
    std::size_t length_;
    std::uint32_t access_;
  };

  class Region final : public fabric::MemoryRegion {
   public:
    Region(FakeDevice& device, void* addr, std::size_t length) : device_(device) {
      addr_ = reinterpret_cast<std::uint64_t>(addr);
      length_ = length;
      lkey_ = static_cast<std::uint32_t>(device.regs);
      ++device_.regions;
      device_.registered_bytes += length;
    }
    ~Region() override {
      --device_.regions;
      device_.registered_bytes -= length_;
    }

   private:
    FakeDevice& device_;
  };
};

}  // namespace rdma_rpc::memory

// Implements a device of the simulated fabric and its memory objects. This code runs on the world's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/sim/world.h"
#include "fabric/software/memory.h"

namespace rdma_rpc::fabric {

class SimDevice final : public Device {
 public:
  SimDevice(World& world, std::string name);
  ~SimDevice() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) override;
  std::unique_ptr<MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                       std::string* error) override;
  std::unique_ptr<Registration> begin_reg_mr(void* addr, std::size_t length, std::uint32_t access) override;
  std::unique_ptr<MemoryWindow> alloc_mw() override;
  std::unique_ptr<CompletionQueue> create_cq(std::uint32_t entries) override;
  std::unique_ptr<QueuePair> create_qp(CompletionQueue& cq, const QpOptions& options,
                                       std::string* error) override;
  std::unique_ptr<ReceiveQueue> create_receive_queue(CompletionQueue& cq, std::uint32_t receives,
                                                     std::string* error) override;
  std::unique_ptr<AddressHandle> create_ah(const AhAttr& attr, std::string* error) override;
  std::unique_ptr<AddressHandle> create_ah_from(const Wc& wc, const std::byte* grh,
                                                std::string* error) override;
  Gid gid() const override { return gid_; }
  DeviceCounters counters() const override { return protection.counters; }

  using Device::note_event;
  World& world() const { return world_; }
  std::uint32_t id() const { return id_; }

  /// Scheduled mode: an atomic that has read its word and has not stored it yet. The next atomic waits for
  /// this one. A store of this process in between is lost, as on a device whose atomics are atomic only among
  /// its own requests.
  struct Update {
    bool pending = false, stores = false;
    std::uint64_t ends_at = 0;
    std::uint32_t key = 0, qp_num = 0;  ///< the right to store is checked once more before the store
    std::uint64_t addr = 0, value = 0;
  };
  Update update;
  void finish_update();

  software::Protection protection;
  DeviceCounters& live = protection.counters;  // the objects themselves keep the counters up to date
  bool stopped = false;                        // SimWorld::stop
  struct Range {
    const std::byte* data;
    std::size_t size;
  };
  std::vector<Range> allocated;  // ranges of alloc_memory(), for devices that expose no other memory

 private:
  std::string why_not_register(const void* addr, std::size_t length, std::uint32_t access);

  World& world_;
  const std::uint32_t id_;
  Capabilities capabilities_;
  Gid gid_{};  ///< fe80::, followed by the number of the device
};

class SimHostMemory final : public HostMemory {
 public:
  SimHostMemory(SimDevice& device, std::shared_ptr<std::byte> pages, std::size_t size);
  ~SimHostMemory() override;

 private:
  SimDevice& device_;
};

}  // namespace rdma_rpc::fabric

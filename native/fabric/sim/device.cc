// Creates devices, memory, regions, windows and queues, see device.h. This code runs on the world's thread.
#include "fabric/sim/device.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "fabric/sim/completion_queue.h"
#include "fabric/sim/queue_pair.h"
#include "fabric/sim/receives.h"
#include "fabric/system_limit.h"

namespace rdma_rpc::fabric {

namespace {

/// Distance between the key seeds of two devices, because a key of one device must not be valid on another.
constexpr std::uint32_t kKeysApart = 64;

}  // namespace

Capabilities sim_capabilities() {
  Capabilities caps;
  caps.name = "sim";
  caps.max_inline = 256;
  caps.max_sge = 16;
  caps.max_sge_read = 16;
  caps.max_qp_wr = 16384;
  caps.max_srq_wr = 32768;
  caps.max_rd_atomic = 16;
  caps.max_msg_bytes = 0xffffffff;
  caps.immediate = true;
  caps.windows = true;
  caps.send_immediate = true;
  caps.atomics = true;
  caps.solicited = true;
  caps.uc = caps.ud = caps.multicast = true;
  caps.srq_limit = caps.drains = caps.resets = caps.steps = true;
  caps.max_datagram_bytes = 4096;
  caps.exposes_any_memory = true;
  return caps;
}

SimDevice::SimDevice(World& world, std::string name)
    : protection(kKeysApart * static_cast<std::uint32_t>(world.devices.size())),
      world_(world),
      id_(static_cast<std::uint32_t>(world.devices.size() + 1)),
      capabilities_(world.options().capabilities) {
  capabilities_.name = std::move(name);
  gid_[0] = std::byte{0xfe};
  gid_[1] = std::byte{0x80};
  for (std::size_t i = 0; i < 4; ++i) gid_[15 - i] = static_cast<std::byte>(id_ >> 8 * i);
  world_.devices.push_back(this);
}

SimDevice::~SimDevice() { world_.devices[id_ - 1] = nullptr; }

std::unique_ptr<HostMemory> SimDevice::alloc_memory(std::size_t bytes, std::string_view) {
  refusal_ = "injected: the device has no memory left";
  if (bytes == 0 || world_.faults.refuse(SimResource::memory)) return nullptr;
  // The memory comes from the heap, which reuses freed memory. With mmap(), 140,000 mappings took a third of
  // the run time of session_test.
  const std::size_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* data = pages < bytes ? nullptr : std::aligned_alloc(kPageBytes, pages);
  if (data == nullptr) {
    refusal_ = "cannot allocate " + std::to_string(bytes) + " bytes: " + system_refusal(ENOMEM);
    return nullptr;
  }
  std::memset(data, 0, bytes);
  std::shared_ptr<std::byte> heap(static_cast<std::byte*>(data), std::free);
  return std::make_unique<SimHostMemory>(*this, std::move(heap), bytes);
}

std::string SimDevice::why_not_register(const void* addr, std::size_t length, std::uint32_t access) {
  const auto start = reinterpret_cast<std::uintptr_t>(addr);
  if (std::string why = fabric::why_not_register(addr, length, access, capabilities_); !why.empty())
    return why;
  const std::uint64_t limit = world_.options().registered_bytes_max;
  if (limit != 0 && (live.memory_bytes > limit || length > limit - live.memory_bytes)) {
    return "registering " + std::to_string(length) + " bytes would exceed registered_bytes_max (" +
           std::to_string(limit) + ", " + std::to_string(live.memory_bytes) + " in use)";
  }
  const bool exposes = (access & (kRemoteAccess | access_mw_bind)) != 0;
  if (exposes && !capabilities_.exposes_any_memory) {
    const bool own = std::any_of(allocated.begin(), allocated.end(), [&](const Range& range) {
      const auto base = reinterpret_cast<std::uintptr_t>(range.data);
      return start >= base && start - base <= range.size && length <= range.size - (start - base);
    });
    if (!own) return "this device exposes only memory from alloc_memory to the peer";
  }
  if (world_.faults.refuse(SimResource::region)) return "injected: the device refuses the registration";
  return {};
}

std::unique_ptr<MemoryRegion> SimDevice::reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                                std::string* error) {
  if (std::string reason = why_not_register(addr, length, access); !reason.empty()) {
    if (error != nullptr) *error = reason;
    return nullptr;
  }
  return software::register_memory(protection, addr, length, access, error);
}

namespace {

/// Nothing is pinned, but users of a simulated device should perform both steps of a real one.
class SimRegistration final : public Registration {
 public:
  SimRegistration(SimDevice& device, void* addr, std::size_t length, std::uint32_t access)
      : device_(device), addr_(addr), length_(length), access_(access) {}
  void pin() override {}
  std::unique_ptr<MemoryRegion> finish(std::string* error) override {
    return device_.reg_mr(addr_, length_, access_, error);
  }

 private:
  SimDevice& device_;
  void* addr_;
  std::size_t length_;
  std::uint32_t access_;
};

}  // namespace

std::unique_ptr<Registration> SimDevice::begin_reg_mr(void* addr, std::size_t length, std::uint32_t access) {
  return std::make_unique<SimRegistration>(*this, addr, length, access);
}

std::unique_ptr<MemoryWindow> SimDevice::alloc_mw() {
  if (!capabilities_.windows || world_.faults.refuse(SimResource::window)) return nullptr;
  return software::alloc_window(protection);
}

std::unique_ptr<CompletionQueue> SimDevice::create_cq(std::uint32_t entries) {
  if (world_.faults.refuse(SimResource::completion_queue)) return nullptr;
  const int event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event_fd < 0) return nullptr;
  return std::make_unique<SimCompletionQueue>(*this, entries, event_fd);
}

std::unique_ptr<QueuePair> SimDevice::create_qp(CompletionQueue& cq, const QpOptions& options,
                                                std::string* error) {
  std::string reason = why_no_queues(options, capabilities_);
  if (reason.empty() && world_.faults.refuse(SimResource::queue_pair)) reason = "injected: no queue pair";
  if (!reason.empty()) {
    if (error != nullptr) *error = reason;
    return nullptr;
  }
  return std::make_unique<SimQueuePair>(*this, static_cast<SimCompletionQueue&>(cq), options);
}

std::unique_ptr<ReceiveQueue> SimDevice::create_receive_queue(CompletionQueue& cq, std::uint32_t receives,
                                                              std::string* error) {
  auto& queue = static_cast<SimCompletionQueue&>(cq);
  std::string reason;
  if (capabilities_.max_srq_wr == 0) return Device::create_receive_queue(cq, receives, error);
  if (receives == 0 || receives > capabilities_.max_srq_wr) {
    reason = std::to_string(receives) + " shared receives are outside 1 to max_srq_wr (" +
             std::to_string(capabilities_.max_srq_wr) + ")";
  } else if (queue.shares_receives) {
    reason = "the completion queue has a shared receive queue already";
  } else if (world_.faults.refuse(SimResource::receive_queue)) {
    reason = "injected: no shared receive queue";
  }
  if (reason.empty()) return std::make_unique<SimReceiveQueue>(*this, queue, receives);
  if (error != nullptr) *error = reason;
  return nullptr;
}

namespace {

class SimAddressHandle final : public AddressHandle {
 public:
  explicit SimAddressHandle(const AhAttr& attr) : AddressHandle(attr) {}
};

}  // namespace

std::unique_ptr<AddressHandle> SimDevice::create_ah(const AhAttr& attr, std::string* error) {
  if (!capabilities_.ud) return Device::create_ah(attr, error);
  if (attr.gid != Gid{}) return std::make_unique<SimAddressHandle>(attr);
  if (error != nullptr) *error = "an address handle needs the GID of a port or group";
  return nullptr;
}

std::unique_ptr<AddressHandle> SimDevice::create_ah_from(const Wc& wc, const std::byte* grh,
                                                         std::string* error) {
  AhAttr attr;
  if (wc.has_grh) std::copy_n(grh + kGrhSourceGid, attr.gid.size(), attr.gid.begin());
  return create_ah(attr, error);
}

void SimDevice::finish_update() {
  const bool stores = update.pending && update.stores;
  update.pending = false;
  if (stores && protection.keys.remote_ok(update.key, update.qp_num, update.addr, sizeof update.value,
                                          access_remote_atomic))
    std::memcpy(reinterpret_cast<void*>(update.addr), &update.value, sizeof update.value);
}

SimHostMemory::SimHostMemory(SimDevice& device, std::shared_ptr<std::byte> pages, std::size_t size)
    : HostMemory(std::move(pages), size), device_(device) {
  device_.allocated.push_back({data(), size});
}

SimHostMemory::~SimHostMemory() {
  std::erase_if(device_.allocated, [this](const SimDevice::Range& range) { return range.data == data(); });
}

}  // namespace rdma_rpc::fabric

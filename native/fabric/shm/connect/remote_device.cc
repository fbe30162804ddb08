// See remote_device.h. Each value in the peer's tables is read once and checked before use.
#include "fabric/shm/connect/remote_device.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "fabric/shm/connect/compatibility.h"
#include "fabric/system_limit.h"

namespace rdma_rpc::fabric::shm {
namespace {

/// Limit of the total memory that one peer sends. Mapping that memory uses address space of this process,
/// which is limited, too.
constexpr std::uint64_t kSentBytesMax = std::uint64_t{16} << 30;

}  // namespace

std::shared_ptr<RemoteDevice> RemoteDevice::open(const AddressBlob& address, bool use_process_vm,
                                                 std::string* error) {
  const ProcessIdentity process{address.pid, address.start_ticks};
  int unknown = 0;
  const bool running = is_running(process, &unknown);
  if (unknown != 0) {
    *error = "shm: cannot look at the peer's process: " + system_refusal(unknown);
    return nullptr;
  }
  if (!running) {
    *error = "shm: no process " + std::to_string(address.pid) +
             " with the peer's start time is visible here: it is on another host or in another pid "
             "namespace, or has ended";
    return nullptr;
  }
  Mapping map = map_peer_memfd(process, address.device_fd, sizeof(DeviceSegment), PeerMay::read, error);
  if (!map) return nullptr;
  std::shared_ptr<RemoteDevice> device(new RemoteDevice(address, std::move(map)));
  if (!device->is_named(address, error)) return nullptr;
  device->announcements_map_ =
      map_peer_memfd(process, address.announcements_fd, sizeof(Announcements), PeerMay::write, error);
  if (!device->announcements_map_) return nullptr;
  *error = why_not_read(device->announcements()->header, address,
                        "shm: the peer's announcements do not belong to the device that its address names");
  if (!error->empty()) return nullptr;
  if (use_process_vm) {
    Token seen{};
    device->reaches_any_memory_ = device->copy(Direction::read, {nullptr, address.token_addr}, seen.data(),
                                               seen.size()) == Copied::all &&
                                  seen == address.device_token;
  }
  return device;
}

std::shared_ptr<RemoteDevice> RemoteDevice::of_sent(const AddressBlob& address, Mapping map,
                                                    std::function<void()> more, std::string* error) {
  std::shared_ptr<RemoteDevice> device(new RemoteDevice(address, std::move(map)));
  if (!device->is_named(address, error)) return nullptr;
  device->sent_ = true;
  device->more_ = std::move(more);
  return device;
}

std::shared_ptr<const PeerPipe> RemoteDevice::pipe(const AddressBlob& address, DeviceCounters& counts,
                                                   std::string* error) {
  KnownPipe& known = pipes_[address.poller];
  auto pipe = known.serial == address.pipe_serial ? known.pipe.lock() : nullptr;
  if (pipe) return pipe;
  UniqueFd fd = open_peer_pipe(process_, address.pipe_fd, error);
  if (!fd) return nullptr;
  pipe = std::make_shared<const PeerPipe>(std::move(fd), counts);
  known = {address.pipe_serial, pipe};
  return pipe;
}

bool RemoteDevice::is_named(const AddressBlob& address, std::string* error) const {
  *error = why_not_read(segment().header, address,
                        "shm: the peer's device segment is not the one that its address names");
  return error->empty();
}

bool RemoteDevice::take_memory(std::uint32_t slot, std::uint64_t serial, std::uint64_t addr, Mapping map) {
  if (slot >= kMemoriesMax || serial == 0) return false;
  Mapped& mapped = memories_[slot];
  sent_bytes_ += map.bytes() - mapped.map.bytes();
  if (sent_bytes_ > kSentBytesMax) return false;
  mapped = {serial, addr, std::move(map)};
  return true;
}

RemoteDevice::RemoteDevice(const AddressBlob& address, Mapping map)
    : process_{address.pid, address.start_ticks},
      token_(address.device_token),
      map_(std::move(map)),
      memories_(kMemoriesMax) {}

bool RemoteDevice::resolve(std::uint32_t memory, std::uint64_t addr, std::uint64_t bytes, RemoteRange* range,
                           std::string* why) {
  *range = {nullptr, addr};
  if (memory == kNoMemory) return reaches_any_memory_;
  if (memory >= kMemoriesMax) return false;
  Mapped& mapped = memories_[memory];
  const std::uint64_t serial = segment().memories[memory].serial.load(std::memory_order_acquire);
  if (serial == 0) return false;
  if (mapped.serial != serial && !map_memory(memory, &mapped, why)) return false;
  const std::uint64_t size = mapped.map.bytes();
  if (addr < mapped.addr || bytes > size || addr - mapped.addr > size - bytes) return false;
  range->mapped = mapped.map.data() + (addr - mapped.addr);
  return true;
}

bool RemoteDevice::map_memory(std::uint32_t memory, Mapped* mapped, std::string* why) {
  if (sent_) {
    // The peer sends each memory before it names it, so the memory arrives when the control connection is
    // read.
    if (more_) more_();
    return mapped->serial == segment().memories[memory].serial.load(std::memory_order_acquire);
  }
  *mapped = {};
  const TableMemory& entry = segment().memories[memory];
  const std::uint64_t serial = entry.serial.load(std::memory_order_acquire);
  const std::uint64_t addr = entry.addr.load(std::memory_order_relaxed);
  const std::uint64_t bytes = entry.bytes.load(std::memory_order_relaxed);
  const std::uint32_t fd = entry.fd.load(std::memory_order_relaxed);
  if (serial == 0 || bytes == 0) return false;
  std::string error;
  errno = 0;
  Mapping map = map_peer_memfd(process_, fd, bytes, PeerMay::write, &error);
  const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  // The descriptor's number may have been closed and reused for another memory meanwhile. If the descriptor
  // was replaced, the serial was changed before.
  shared_fence(std::memory_order_acquire);
  if (!map && why != nullptr && exhausted) *why = error;
  if (!map || entry.serial.load(std::memory_order_relaxed) != serial) return false;
  *mapped = {serial, addr, std::move(map)};
  return true;
}

void RemoteDevice::unmap_memories() {
  std::uint64_t left = 0;
  for (std::uint32_t i = 0; i < kMemoriesMax; ++i) {
    Mapped& each = memories_[i];
    if (each.serial == 0) continue;
    const bool there = segment().memories[i].serial.load(std::memory_order_relaxed) == each.serial;
    if (there && left + each.map.bytes() <= kReleasedBytesMax) {
      left += each.map.bytes();
    } else {
      each = {};
    }
  }
}

namespace {

// For large copies memcpy uses `rep movsb`. Some CPUs (Zen 3 and 4) execute this instruction at 3 GB/s
// instead of 25 GB/s when the target lies 1 to 63 bytes further into its page than the source. A tag and
// length in front of a page-aligned payload produce exactly this offset. Copying in blocks makes memcpy use
// plain loads and stores.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kBlock = 128;
  const auto ahead = (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) & 4095u;
  if (ahead > 0 && ahead < 64) {
    for (; bytes >= kBlock; to += kBlock, from += kBlock, bytes -= kBlock) {
      std::byte block[kBlock];
      std::memcpy(block, from, kBlock);
      std::memcpy(to, block, kBlock);
    }
  }
  copy_shared(to, from, bytes);
}

}  // namespace

Copied RemoteDevice::copy(Direction direction, const RemoteRange& remote, void* local,
                          std::size_t bytes) const {
  if (bytes == 0) return Copied::all;
  if (remote.mapped != nullptr) {
    if (direction == Direction::read) {
      copy_bytes(static_cast<std::byte*>(local), remote.mapped, bytes);
    } else {
      copy_bytes(remote.mapped, static_cast<const std::byte*>(local), bytes);
    }
    return Copied::all;
  }
  const iovec here{local, bytes};
  const iovec there{reinterpret_cast<void*>(remote.addr), bytes};
  const auto pid = static_cast<pid_t>(process_.pid);
  const ssize_t moved = direction == Direction::read ? ::process_vm_readv(pid, &here, 1, &there, 1, 0)
                                                     : ::process_vm_writev(pid, &here, 1, &there, 1, 0);
  if (moved == static_cast<ssize_t>(bytes)) return Copied::all;
  return moved >= 0 || errno == EFAULT ? Copied::gone : Copied::refused;
}

}  // namespace rdma_rpc::fabric::shm

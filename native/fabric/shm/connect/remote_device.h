// Gives access to the peer's device as this process sees it: its tables, its memory (mapped at first use)
// and, if the system allows it, all other memory of its process. The queue pairs that connect to that device
// share this object. This code runs on the device's thread, which also performs the copies.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/shm/connect/process.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory/segment.h"

namespace rdma_rpc::fabric::shm {

/// A range of the peer's memory. `mapped` is null when the range can be reached only by its address in the
/// peer's process.
struct RemoteRange {
  std::byte* mapped = nullptr;
  std::uint64_t addr = 0;
};
/// Limit of the memory that stays mapped after the last queue pair to a peer has ended. The limit is enough
/// for the receives of one or two sessions.
inline constexpr std::uint64_t kReleasedBytesMax = std::uint64_t{12} << 20;
enum class Direction { read, write };
/// `gone`: the peer has no memory there. `refused`: the kernel denies access, or the peer has ended.
enum class Copied { all, gone, refused };

/// The pipe that wakes a completion queue of the peer. The queue pairs that connect to that completion queue
/// share the pipe.
struct PeerPipe {
  PeerPipe(UniqueFd fd_, DeviceCounters& counts_) : fd(std::move(fd_)), counts(counts_) { ++counts.open_fds; }
  PeerPipe(const PeerPipe&) = delete;
  PeerPipe& operator=(const PeerPipe&) = delete;
  ~PeerPipe() { --counts.open_fds; }
  const UniqueFd fd;
  DeviceCounters& counts;
};

class RemoteDevice {
 public:
  /// Returns null when the device cannot be reached; `error` says why. `use_process_vm` determines whether to
  /// try to reach all memory of the peer's process.
  static std::shared_ptr<RemoteDevice> open(const AddressBlob& address, bool use_process_vm,
                                            std::string* error);

  /// Creates the device of a shm-fd peer from the device segment that the peer has sent. `more` reads further
  /// memories from the control connection.
  static std::shared_ptr<RemoteDevice> of_sent(const AddressBlob& address, Mapping map,
                                               std::function<void()> more, std::string* error);
  /// shm-fd: adds a memory that the peer has sent. Returns false when the memory is not one of the peer's
  /// memories.
  bool take_memory(std::uint32_t slot, std::uint64_t serial, std::uint64_t addr, Mapping map);

  const ProcessIdentity& process() const { return process_; }
  /// Returns whether the address belongs to this device.
  bool is(const AddressBlob& address) const {
    return address.device_token == token_ && address.pid == process_.pid &&
           address.start_ticks == process_.start_ticks;
  }
  const Poller& poller(std::uint32_t index) const { return segment().pollers[index]; }
  /// Returns the pipe. Opens it unless another queue pair has it open. Returns null when the system refuses;
  /// `error` says why.
  std::shared_ptr<const PeerPipe> pipe(const AddressBlob& address, DeviceCounters& counts,
                                       std::string* error);
  /// Returns the table entry of this key. The entry's `key` field says whether the key is valid.
  const TableKey& entry(std::uint32_t key) const { return segment().keys[key >> kKeyGenerationBits]; }
  /// Returns the peer's announcements, or null for shm-fd.
  Announcements* announcements() const { return reinterpret_cast<Announcements*>(announcements_map_.data()); }
  bool reaches_any_memory() const { return reaches_any_memory_; }

  /// Finds the range. Returns false when the range does not exist or cannot be reached. May map memory (at
  /// first use). If the process lacks descriptors or memory, `why` says so.
  bool resolve(std::uint32_t memory, std::uint64_t addr, std::uint64_t bytes, RemoteRange* range,
               std::string* why = nullptr);
  /// Unmaps the peer's memories when no queue pair uses them, because mapped memory would otherwise outlive a
  /// peer that ends. Small memories that still exist stay mapped for the next session.
  void unmap_memories();
  /// Copies between the peer's memory and local memory. Always succeeds for mapped memory.
  Copied copy(Direction direction, const RemoteRange& remote, void* local, std::size_t bytes) const;

 private:
  struct Mapped {
    std::uint64_t serial = 0;
    std::uint64_t addr = 0;
    Mapping map;
  };
  RemoteDevice(const AddressBlob& address, Mapping map);
  bool is_named(const AddressBlob& address, std::string* error) const;
  const DeviceSegment& segment() const { return *reinterpret_cast<const DeviceSegment*>(map_.data()); }
  bool map_memory(std::uint32_t memory, Mapped* mapped, std::string* why);

  ProcessIdentity process_;
  Token token_;
  Mapping map_, announcements_map_;
  bool reaches_any_memory_ = false;
  std::vector<Mapped> memories_;
  /// The index is that of the poller.
  struct KnownPipe {
    std::uint32_t serial = 0;
    std::weak_ptr<const PeerPipe> pipe;
  };
  std::array<KnownPipe, kPollersMax> pipes_;
  bool sent_ = false;  ///< shm-fd: the peer sends its memories over the control connection
  std::uint64_t sent_bytes_ = 0;
  std::function<void()> more_;
};

}  // namespace rdma_rpc::fabric::shm

// The peer's device as this process sees it: its tables, its memory (mapped when first used) and, where the
// system allows it, all other memory of its process. Shared by the queue pairs that lead to it. Used on the
// device's thread; copies run there.
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

/// Memory of the peer. `mapped` is null when it can only be reached by its address there.
struct RemoteRange {
  std::byte* mapped = nullptr;
  std::uint64_t addr = 0;
};
/// What may stay mapped of a peer that no queue pair leads to: the receives of a session or two.
inline constexpr std::uint64_t kLeftBytesMax = std::uint64_t{12} << 20;
enum class Direction { read, write };
/// `vanished`: the peer has no memory there. `refused`: the kernel lets nobody in, or the peer has ended.
enum class Copied { all, vanished, refused };

/// What the completion queue of a peer is woken by. Shared by the queue pairs that lead to it.
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
  /// Null when it cannot be reached; `error` says why. `use_process_vm`: try whether all of its memory can
  /// be.
  static std::shared_ptr<RemoteDevice> open(const AddressBlob& address, bool use_process_vm,
                                            std::string* error);

  /// Of a peer by descriptors, from its device segment. `more`: looks whether the peer has sent memory.
  static std::shared_ptr<RemoteDevice> of_sent(const AddressBlob& address, Mapping map,
                                               std::function<void()> more, std::string* error);
  /// By descriptors: what the peer has sent. False: that is none of its memories.
  bool take_memory(std::uint32_t slot, std::uint64_t serial, std::uint64_t addr, Mapping map);

  const ProcessIdentity& process() const { return process_; }
  /// Whether that address leads here.
  bool is(const AddressBlob& address) const {
    return address.device_token == token_ && address.pid == process_.pid &&
           address.start_ticks == process_.start_ticks;
  }
  const Poller& poller(std::uint32_t index) const { return segment().pollers[index]; }
  /// Opened when no queue pair has it. Null when the system refuses; `error` says why.
  std::shared_ptr<const PeerPipe> pipe(const AddressBlob& address, DeviceCounters& counts,
                                       std::string* error);
  /// The table's entry for this key. Its `key` says whether the key is good.
  const TableKey& entry(std::uint32_t key) const { return segment().keys[key >> kKeyGenerationBits]; }
  /// Null by descriptors.
  Announcements* announcements() const { return reinterpret_cast<Announcements*>(announcements_map_.data()); }
  bool reaches_any_memory() const { return reaches_any_memory_; }

  /// False when that range is not there or cannot be reached. May map memory (first use); `why` says why that
  /// failed where it was for want of descriptors or memory here.
  bool resolve(std::uint32_t memory, std::uint64_t addr, std::uint64_t bytes, RemoteRange* range,
               std::string* why = nullptr);
  /// Nobody uses any of them, and a peer that ends would be kept its memory by them. What is small and still
  /// there stays, for the next session.
  void unmap_memories();
  /// Copies between the peer's memory and ours. With mapped memory it always can.
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
  /// By poller.
  struct KnownPipe {
    std::uint32_t serial = 0;
    std::weak_ptr<const PeerPipe> pipe;
  };
  std::array<KnownPipe, kPollersMax> pipes_;
  bool sent_ = false;  ///< by descriptors: memory comes when the peer sends it
  std::uint64_t sent_bytes_ = 0;
  std::function<void()> more_;
};

}  // namespace rdma_rpc::fabric::shm

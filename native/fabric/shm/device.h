// The device owns the segment with its tables. The device creates all other objects, and keeps track of them.
// This code runs on one thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/free_list.h"
#include "fabric/shm/connect/control_connection.h"
#include "fabric/shm/connect/process.h"
#include "fabric/shm/connect/remote_device.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory/memory.h"
#include "fabric/shm/memory/protection_table.h"
#include "fabric/shm/memory/segment.h"
#include "fabric/shm/shm.h"

namespace rdma_rpc::fabric::shm {

class CompletionQueue;
class QueuePair;

/// Fills in a random token. Returns false when the system has no random bytes.
bool make_token(Token* token);

class Device final : public fabric::Device {
 public:
  /// `announcements` is empty for shm-fd.
  Device(const ShmOptions& options, Segment segment, Segment announcements, const Token& token,
         bool any_memory);

  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) override;
  std::unique_ptr<MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                       std::string* error) override;
  std::unique_ptr<MemoryWindow> alloc_mw() override;
  std::unique_ptr<fabric::CompletionQueue> create_cq(std::uint32_t entries) override;
  std::unique_ptr<fabric::QueuePair> create_qp(fabric::CompletionQueue& cq, const QpOptions& options,
                                               std::string* error) override;
  DeviceCounters counters() const override { return counters_; }

  // The following members are for the other classes of this folder.
  const ShmOptions& options() const { return options_; }
  DeviceSegment& shared() const { return *reinterpret_cast<DeviceSegment*>(segment_.map.data()); }
  int fd() const { return segment_.fd.get(); }
  const Token& token() const { return token_; }
  const ProcessIdentity& process() const { return process_; }
  ProtectionTable& table() { return table_; }
  DeviceCounters& counts() { return counters_; }
  std::uint32_t next_pipe_serial() { return ++last_pipe_serial_; }
  /// Registers a queue pair whose segment's descriptor can be closed after the peer has mapped the segment.
  /// See close_opened_files().
  void note_open_file(QueuePair& qp) { with_file_.push_back(&qp); }

  /// Returns the memory that contains the whole range, named by its first slot, or kNoMemory.
  std::uint32_t memory_of(std::uint64_t addr, std::uint64_t bytes) const;
  /// shm-fd: lets peers reach the memory of this slot from now on.
  void show(std::uint32_t slot);
  /// Sends a peer all memory that peers may reach. Returns false when the connection accepts no more.
  bool show_all(ControlConnection& control) const;
  /// Returns the queue pair with this token, or null.
  QueuePair* find(const Token& token) const;
  /// Puts the queue pairs that peers have announced on the lists of their completion queues. For `order` see
  /// collect().
  void collect_announced(std::memory_order order);
  /// Returns this device's announcements, or null for shm-fd.
  Announcements* announcements() const {
    return reinterpret_cast<Announcements*>(announcements_segment_.map.data());
  }
  int announcements_fd() const { return announcements_segment_.fd.get(); }

  /// Returns the slot through which a peer reaches a range inside `memory`. If `memory` or the result is
  /// kNoMemory, the peer reaches the range by its address.
  std::uint32_t share(std::uint32_t memory, std::uint64_t addr, std::uint64_t bytes);
  /// Returns the peer's device that the address names. Returns null when it cannot be reached; `error` says
  /// why.
  std::shared_ptr<RemoteDevice> remote(const AddressBlob& address, std::string* error);
  /// Releases a remote device whose queue pair on this side ends. The tables of the last such device stay
  /// mapped until another device is released. A client that connects for each call thus finds them mapped.
  void leave(std::shared_ptr<RemoteDevice> remote);

  /// Takes the pages of that range away from all peers. Queue pairs that still use a part of those pages go
  /// to ERR. Returns false when peers reach the range by its address; the caller can then only wait.
  bool reclaim(std::uint64_t addr, std::uint64_t bytes);
  /// Revokes a key. Returns when no peer copies through the key any more, at the latest after the grace
  /// period.
  void revoke_and_wait(std::uint32_t key, const KeyEntry& key_entry);

  /// Enters a memfd in the table, where peers find it. Returns its slot, or kNoMemory when all slots are in
  /// use.
  std::uint32_t publish(SharedMemory& memory, const PageRange& range, int fd);
  void revoke(std::uint32_t slot);
  void forget(const CompletionQueue& cq);
  void forget(const QueuePair& qp);

 private:
  bool in_use(const PageRange& pages) const;
  void close_opened_files();
  void enter(std::uint32_t slot, const PageRange& range, int fd);
  FileNote note_of(std::uint32_t slot, int* fd) const;

  ShmOptions options_;
  Capabilities capabilities_;
  Segment segment_, announcements_segment_;
  const Token token_;
  const ProcessIdentity process_;
  ProtectionTable table_;
  DeviceCounters counters_;
  std::vector<SharedMemory*> memories_;  ///< by slot; null when the slot is free
  std::vector<std::uint32_t> shown_;     ///< shm-fd: slots that peers may reach, in the order in which show()
                                         ///< was called
  std::vector<bool> pollers_used_;
  std::vector<QueuePair*> queue_pairs_;
  std::vector<QueuePair*> by_index_;  ///< null when the index is free
  FreeList<> free_indices_;
  std::deque<QueuePair*> with_file_;
  std::vector<std::weak_ptr<RemoteDevice>> remotes_;
  std::shared_ptr<RemoteDevice> released_remote_;
  std::uint64_t memory_serial_ = 0;
  std::uint32_t last_qp_num_ = 0, last_pipe_serial_ = 0;
};

}  // namespace rdma_rpc::fabric::shm

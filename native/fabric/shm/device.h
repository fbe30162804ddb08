// The device: owns the segment with its tables, makes everything else, and knows all of it. Used on one
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
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

class Device final : public fabric::Device {
 public:
  Device(const ShmOptions& options, Segment segment, const Token& token, bool any_memory);

  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) override;
  std::unique_ptr<MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                       std::string* error) override;
  std::unique_ptr<MemoryWindow> alloc_mw() override;
  std::unique_ptr<fabric::CompletionQueue> create_cq(std::uint32_t entries) override;
  std::unique_ptr<fabric::QueuePair> create_qp(fabric::CompletionQueue& cq, const QpOptions& options,
                                               std::string* error) override;
  DeviceCounters counters() const override { return counters_; }

  // For the other classes of this folder.
  const ShmOptions& options() const { return options_; }
  DeviceSegment& shared() const { return *reinterpret_cast<DeviceSegment*>(segment_.map.data()); }
  int fd() const { return segment_.fd.get(); }
  const Token& token() const { return token_; }
  const ProcessIdentity& process() const { return process_; }
  ProtectionTable& table() { return table_; }
  DeviceCounters& counts() { return counters_; }

  /// The memory that has that range, named by its first slot, or kNoMemory.
  std::uint32_t memory_of(std::uint64_t addr, std::uint64_t bytes) const;
  /// By descriptors: the memory of this slot is one that peers may reach from now on.
  void show(std::uint32_t slot);
  /// Sends a peer whatever peers may reach. False: it takes no more.
  bool show_all(ControlConnection& control) const;
  /// The queue pair of this token, or null.
  QueuePair* find(const Token& token) const;

  /// The slot through which a peer reaches a range that lies in `memory` or, with kNoMemory, in none:
  /// kNoMemory means by address.
  std::uint32_t share(std::uint32_t memory, std::uint64_t addr, std::uint64_t bytes);
  std::shared_ptr<RemoteDevice> remote(const AddressBlob& address, std::string* error);

  /// Takes the pages of that range away from all peers. Queue pairs that still use a part of those pages go
  /// to ERR. False: peers reach that range by address, so that only waiting helps.
  bool reclaim(std::uint64_t addr, std::uint64_t bytes);
  /// Revokes a key and returns when no peer copies through it any more, at the latest after the grace.
  void revoke_and_wait(std::uint32_t key, const Grant& grant);

  /// Shows a memfd to peers. The slot, or kNoMemory when all are taken.
  std::uint32_t publish(SharedMemory& memory, const PageRange& range, int fd);
  void withdraw(std::uint32_t slot);
  void forget(const CompletionQueue& cq);
  void forget(const QueuePair& qp);

 private:
  bool in_use(const PageRange& pages) const;
  void enter(std::uint32_t slot, const PageRange& range, int fd);
  FileNote note_of(std::uint32_t slot, int* fd) const;

  ShmOptions options_;
  Capabilities capabilities_;
  Segment segment_;
  const Token token_;
  const ProcessIdentity process_;
  ProtectionTable table_;
  DeviceCounters counters_;
  std::vector<SharedMemory*> memories_;  ///< by slot; null: free
  std::vector<std::uint32_t> shown_;     ///< by descriptors: slots that peers may reach, in order
  std::vector<bool> pollers_used_;
  std::vector<QueuePair*> queue_pairs_;
  std::vector<std::weak_ptr<RemoteDevice>> remotes_;
  std::uint64_t memory_serial_ = 0;
  std::uint32_t last_qp_num_ = 0;
};

}  // namespace rdma_rpc::fabric::shm

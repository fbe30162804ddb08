// Implements an opened device: context, protection domain, the port in use, the probed capabilities, and all
// queue pairs by number. This code runs on one thread.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/verbs/connect/attempts.h"
#include "fabric/verbs/connect/connection_manager.h"
#include "fabric/verbs/port.h"
#include "fabric/verbs/port_state.h"
#include "fabric/verbs/probe.h"
#include "fabric/verbs/queue/watchdog.h"
#include "fabric/verbs/windows.h"

namespace rdma_rpc::fabric::verbs {

class QueuePair;
class ReceiveQueue;

class Device final : public fabric::Device {
 public:
  /// Returns null, with the reason in `why`, when the device cannot be used.
  static std::unique_ptr<Device> make(ContextPtr context, const VerbsOptions& options, const Port& port,
                                      std::string* why);

  const Capabilities& capabilities() const override { return probed_.capabilities; }
  std::unique_ptr<HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) override;
  std::unique_ptr<MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                       std::string* error) override;
  std::unique_ptr<Registration> begin_reg_mr(void* addr, std::size_t length, std::uint32_t access) override;
  std::unique_ptr<MemoryRegion> reg_dmabuf_mr(int fd, std::uint64_t offset, std::size_t length,
                                              std::uint64_t iova, std::uint32_t access,
                                              std::string* error) override;
  std::unique_ptr<MemoryWindow> alloc_mw() override;
  std::unique_ptr<fabric::CompletionQueue> create_cq(std::uint32_t entries) override;
  std::unique_ptr<fabric::QueuePair> create_qp(fabric::CompletionQueue& cq, const QpOptions& options,
                                               std::string* error) override;
  std::unique_ptr<fabric::ReceiveQueue> create_receive_queue(fabric::CompletionQueue& cq,
                                                             std::uint32_t receives,
                                                             std::string* error) override;
  // datagram/address_handle.cc
  std::unique_ptr<fabric::AddressHandle> create_ah(const AhAttr& attr, std::string* error) override;
  std::unique_ptr<fabric::AddressHandle> create_ah_from(const Wc& wc, const std::byte* grh,
                                                        std::string* error) override;
  Gid gid() const override;
  DeviceCounters counters() const override {
    DeviceCounters all = counters_;
    all.memory_bytes = *memory_bytes_;
    return all;
  }

  // The following members are for the other classes of this folder.
  const VerbsOptions& options() const { return options_; }
  const Port& port() const { return port_; }
  /// Queries the port again, see port.h. This function is called for each queue pair that is made or
  /// connected, and when the device reports a change.
  void refresh_port();
  /// Returns why the port can neither send nor receive, or "" when it can. See port_state.h.
  const std::string& why_port_down() { return port_state_.why_down(context_.get(), port_.number); }
  /// Returns the active MTU of the port as an ibv_mtu, or 0 when it is unknown. See port_state.h.
  std::uint32_t port_mtu() { return port_state_.mtu(context_.get(), port_.number); }
  soft::Driver driver() const { return probed_.driver; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }
  Attempts& attempts() { return attempts_; }
  /// Returns null when rdma_cm is not used.
  ConnectionManager* cm() const { return cm_.get(); }
  /// Returns a queue pair together with the objects on which it depends.
  QueueObjects with_its_needs(const ChannelPtr& channel, const CqPtr& cq, const SrqPtr& srq, QpPtr qp) const {
    return {context_, pd_, channel, cq, srq, std::move(qp)};
  }
  /// Returns the number of READs of the peer that a new queue pair can serve at once. All queue pairs of a
  /// device, of all processes, share its max_res_rd_atom.
  std::uint16_t share_of_reads() const;
  void reserve_reads(std::uint16_t reads) { reads_reserved_ += reads; }
  void return_reads(std::uint16_t reads) { reads_reserved_ -= reads; }
  /// Counts the memory of queues, which is locked like registered memory.
  std::uint64_t& memory_bytes() { return *memory_bytes_; }
  /// Returns a text to add to an error. The text says how many of these objects this process has, and how
  /// many the device allows.
  std::string budget(const char* limit, std::uint64_t used, int most) const;
  /// Ends the queue pairs on a completion queue of the device that has failed. `why` follows the name.
  void lose_completions(const ibv_cq* cq, const std::string& why);
  WindowTable& windows() { return windows_; }
  DeviceCounters& counts() { return counters_; }
  /// Enters a queue pair in the table and returns its slot: 16 bits of index and 15 of generation, so that
  /// completions of a destroyed queue pair are recognised.
  std::uint32_t enter(QueuePair& qp);
  void leave(const QueuePair& qp, std::uint32_t slot);
  QueuePair* find(std::uint32_t slot) const {
    const std::uint32_t index = slot & 0xffff;
    return index < slots_.size() && slots_[index].generation == slot >> 16 ? slots_[index].qp : nullptr;
  }
  /// Queue pairs with shared receives, whose completions name them only by the device's number.
  QueuePair* find_on_shared(std::uint32_t qp_num) const {
    const auto found = on_shared_.find(qp_num);
    return found == on_shared_.end() ? nullptr : found->second;
  }
  void enter_on_shared(QueuePair& qp);
  void enter(ReceiveQueue& receives) { receive_queues_.push_back(&receives); }
  void leave(const ReceiveQueue& receives) { std::erase(receive_queues_, &receives); }
  /// Reads the events that the device reports by itself; queue pairs reported as broken go to ERR. See
  /// events.cc.
  void read_async_events();
  Watchdog& watchdog() { return watchdog_; }
  /// Checks each second whether requests are stuck. Returns false when no queue pair waits for a completion.
  bool check_requests();
  /// Returns whether the device completes no request any more. A removed device (is_gone()) need not be dead.
  /// Objects of a dead device can still be closed.
  bool is_dead() const { return dead_; }

 private:
  std::unique_ptr<Pinning> pinning(void* addr, std::size_t length, std::uint32_t access);
  Device() = default;
  /// Removes features from the capabilities that the device reports but that do not work, see trial.h.
  void try_out(const Port& port);
  std::string choose_ways();
  std::string path() const;
  /// Makes the address of a new queue pair, except for its number.
  std::string make_address(bool active, Address* address);
  void handle(const ibv_async_event& event);
  void tell(const ibv_async_event& event);
  void be_removed();

  VerbsOptions options_;
  Port port_;
  PortState port_state_;
  ContextPtr context_;
  PdPtr pd_;
  CqPtr prepared_;  ///< result of soft::prepare()
  Probed probed_;
  DeviceCounters counters_;  ///< without `memory_bytes`, which is counted in:
  std::shared_ptr<std::uint64_t> memory_bytes_ =
      std::make_shared<std::uint64_t>();  ///< shared, because memory may outlive the device
  WindowTable windows_;
  struct Slot {
    QueuePair* qp = nullptr;
    std::uint32_t generation = 0;
  };
  std::vector<Slot> slots_;
  std::unordered_map<std::uint32_t, QueuePair*> on_shared_;  ///< by queue pair number
  std::vector<ReceiveQueue*> receive_queues_;
  int numa_node_ = -1;  ///< its NUMA node, see numa.h
  bool dead_ = false;
  std::uint32_t reads_reserved_ = 0;
  Attempts attempts_;
  std::unique_ptr<ConnectionManager> cm_;
  Watchdog watchdog_{*this};
};

}  // namespace rdma_rpc::fabric::verbs

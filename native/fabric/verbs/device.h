// An opened device: context, protection domain, the port and GID in use, what was probed, and all queue pairs
// by number. Used on one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/address.h"
#include "fabric/verbs/objects.h"
#include "fabric/verbs_loader.h"

namespace rdma_rpc::fabric::verbs {

class QueuePair;

class Device final : public fabric::Device {
 public:
  static std::unique_ptr<Device> open(const VerbsOptions& options, std::string* error);

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
  const VerbsOptions& options() const { return options_; }
  ibv_context* context() const { return context_.get(); }
  /// Of this port, without what is a queue pair's own.
  const Address& port_address() const { return address_; }
  std::uint8_t gid_index() const { return gid_index_; }
  DeviceCounters& counts() { return counters_; }
  /// A queue pair's place: 16 bits of index, 15 of generation, so that completions of one that is gone are
  /// told apart.
  std::uint32_t enter(QueuePair& qp);
  void leave(std::uint32_t place);
  QueuePair* find(std::uint32_t place) const;
  /// Moves queue pairs that the device reports as broken to ERR.
  void read_async_events();

 private:
  bool choose_port(std::string* error);
  bool choose_gid(std::string* error);
  bool probe(std::string* error);
  std::uint32_t probe_inline(ibv_cq* cq) const;

  VerbsOptions options_;
  ContextPtr context_;
  PdPtr pd_;
  ibv_device_attr attr_{};
  Capabilities capabilities_;
  Address address_;
  std::uint8_t gid_index_ = 0;
  DeviceCounters counters_;
  struct Place {
    QueuePair* qp = nullptr;
    std::uint32_t generation = 0;
  };
  std::vector<Place> places_;
};

}  // namespace rdma_rpc::fabric::verbs

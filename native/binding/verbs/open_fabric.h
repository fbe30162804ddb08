// Opens the device that `rdma-rpc/verbs` asks for by name, or that remote memory of a session needs. This
// code runs on the JS thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "binding/verbs/owned_memory.h"
#include "fabric/sim/sim.h"
#include "fabric/verbs_loader.h"

namespace rdma_rpc::binding {

struct OpenOptions {
  std::string fabric;      ///< sim, shm, tcp or verbs
  std::uint64_t seed = 1;  ///< sim: the seed of its world
  /// sim: the number of packets in a million of UC and UD that are lost, and the number that are duplicated.
  std::uint32_t loss_ppm = 0, duplicate_ppm = 0;
  std::string host;  ///< tcp: the host name on which connections are accepted
  /// tcp: another part of the process accepts connections and hands them over (fabric/acceptor.h).
  bool handed_over = false;
  fabric::VerbsOptions verbs;
};

/// An open device, the memory that it has allocated, and the objects that it needs.
class OpenFabric {
 public:
  /// Returns null, with the reason in `error`, when the device cannot be opened.
  static std::shared_ptr<OpenFabric> open(const OpenOptions& options, std::string* error);
  ~OpenFabric();

  /// Returns the device. A reference to it keeps the whole OpenFabric alive.
  static std::shared_ptr<fabric::Device> device(const std::shared_ptr<OpenFabric>& open) {
    return {open, open->device_.get()};
  }
  /// Returns null when the system refuses; the device's refusal() then says why.
  std::shared_ptr<OwnedBlock> alloc(std::size_t bytes);

 private:
  std::shared_ptr<fabric::SimWorld> world_;  ///< null except for sim
  std::unique_ptr<fabric::Device> device_;
  std::vector<std::weak_ptr<OwnedBlock>> blocks_;
};

}  // namespace rdma_rpc::binding

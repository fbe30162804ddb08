// Runs the fabric suite on the simulated fabric in four variants: immediate, scheduled, with the reduced
// capabilities of a soft-iWARP device, and as a device whose owner's CPU serves READs.
#include "fabric/sim/devices.h"

namespace rdma_rpc::fabric::test {
namespace {

SimOptions scheduled() {
  SimOptions options;
  options.mode = SimMode::scheduled;
  options.seed = 7;
  return options;
}

SimOptions modest() {
  SimOptions options = scheduled();
  Capabilities& caps = options.capabilities;
  caps.max_inline = 80;
  caps.max_sge = 6;
  caps.max_sge_read = 1;
  caps.max_rd_atomic = 1;
  caps.immediate = caps.send_immediate = false;
  caps.atomics = caps.uc = caps.ud = caps.multicast = false;
  caps.windows = false;
  caps.exposes_any_memory = false;
  caps.read_sink_needs_remote_write = true;
  return options;
}

SimOptions late() {
  SimOptions options = scheduled();
  options.capabilities.reads_memory_late = true;
  return options;
}

FabricFactory sim(std::string name, const SimOptions& options) {
  return {std::move(name), [options] { return std::make_unique<SimFabric>(options); }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sim, FabricSuite,
                         ::testing::Values(sim("immediate", {}), sim("scheduled", scheduled()),
                                           sim("modest", modest()), sim("late", late())),
                         factory_name);

}  // namespace rdma_rpc::fabric::test

// Opens two simulated devices of one world, for the fabric suite and the tests of sim's own features.
#pragma once

#include "fabric/sim/sim.h"
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

class SimFabric final : public FabricUnderTest {
 public:
  explicit SimFabric(SimOptions options = {})
      : world(std::move(options)),
        client_(world.open_device("sim client")),
        server_(world.open_device("sim server")) {}
  Device& client() override { return *client_; }
  Device& server() override { return *server_; }
  void pump() override { world.run_until_idle(); }

  SimWorld world;

 private:
  std::unique_ptr<Device> client_, server_;
};

}  // namespace rdma_rpc::fabric::test

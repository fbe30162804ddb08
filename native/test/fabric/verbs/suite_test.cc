// Runs the fabric suite on real RDMA devices: those in RDMA_RPC_VERBS_DEVICES (two names with a comma), or
// the first device with itself. The suite runs once for each way of connecting. This is a separate program,
// which prints "not run" and the reason when no device exists.
//
// In the virtual machine (RDMA_VM) it runs only for the first way, which is rdma_cm. For the sideband, the
// simulated NICs have the suite (native/test/nic/suite_test.cc), and the tests of connections beside this
// file use both ways.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "fabric/suite/fabric_suite.h"
#include "fabric/verbs/devices.h"

namespace rdma_rpc::fabric::test {
namespace {

/// An acknowledgement may take 0.27 s: for 8 MiB over soft-RoCE on a busy machine it takes more than 0.07 s,
/// and each such delay costs a retry.
VerbsOptions suite_options(std::size_t which, VerbsConnect connect) {
  VerbsOptions options = test_options(which, connect);
  options.ack_timeout = 16;
  return options;
}

class VerbsFabric final : public FabricUnderTest {
 public:
  explicit VerbsFabric(VerbsConnect connect)
      : client_(open_verbs_device(suite_options(0, connect), &error_)),
        server_(open_verbs_device(suite_options(1, connect), &error_)) {}
  Device& client() override { return *client_; }
  Device& server() override { return *server_; }
  // The kernel executes the requests, so it must get the processor.
  void pump() override {
    const timespec moment{0, 100'000};
    ::nanosleep(&moment, nullptr);
  }
  int idle_rounds() const override { return 100; }
  std::size_t case_stride() const override { return 37; }

 private:
  std::string error_;
  std::unique_ptr<Device> client_, server_;
};

/// Returns the ways to connect that both devices have. Each test calls this function at the start of the
/// program.
const std::vector<FabricFactory>& ways() {
  static std::vector<FabricFactory> found;
  static bool looked = false;
  if (std::exchange(looked, true)) return found;
  for (const auto& [name, connect] :
       {std::pair{"cm", VerbsConnect::cm}, {"sideband", VerbsConnect::sideband}}) {
    const std::string why = why_not_run(connect);
    if (!why.empty()) std::printf("not run: %s: %s\n", name, why.c_str());
    if (why.empty()) found.push_back({name, [connect] { return std::make_unique<VerbsFabric>(connect); }});
    if (!found.empty() && std::getenv("RDMA_VM") != nullptr) break;
  }
  return found;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Verbs, FabricSuite, ::testing::ValuesIn(ways()), factory_name);

}  // namespace rdma_rpc::fabric::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::string why = rdma_rpc::fabric::test::why_not_run(rdma_rpc::fabric::VerbsConnect::automatic);
  if (why.empty()) return RUN_ALL_TESTS();
  std::printf("verbs_test: Skipped\nnot run: %s\n", why.c_str());
  return 77;
}

// The fabric suite on two NICs of our own making: that the NIC itself does what RC promises, and that
// everything of native/fabric/verbs works without a device of this machine.
#include "fabric/suite/fabric_suite.h"

#include "fabric/verbs_loader.h"
#include "nic/device/nic.h"

namespace rdma_rpc::fabric::test {
namespace {

class NicFabric final : public FabricUnderTest {
 public:
  NicFabric() {
    for (auto [name, device] : {std::pair{"nic0", &client_}, {"nic1", &server_}}) {
      nic::Profile profile = nic::capable();
      profile.name = name;
      machine_.add(profile);
      VerbsOptions options;
      options.device = name;
      std::string error;
      *device = open_verbs_device(options, &error);
      EXPECT_NE(*device, nullptr) << error;
    }
  }
  Device& client() override { return *client_; }
  Device& server() override { return *server_; }
  void pump() override {}
  int idle_rounds() const override { return 100; }
  std::size_t case_stride() const override { return 37; }

 private:
  nic::Machine machine_;
  std::unique_ptr<Device> client_, server_;
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nic, FabricSuite,
                         ::testing::Values(FabricFactory{"capable",
                                                         [] { return std::make_unique<NicFabric>(); }}),
                         factory_name);

}  // namespace rdma_rpc::fabric::test

// Runs the fabric suite on each simulated NIC. The suite shows that native/fabric/verbs works with the
// capabilities and the behaviour of each NIC, on a machine without a device. On the first NIC, it also shows
// that the simulation itself behaves as a reliable connection must.
#include "fabric/suite/fabric_suite.h"

#include "fabric/verbs_loader.h"
#include "nic/device/profiles.h"
#include "nic/open.h"

namespace rdma_rpc::fabric::test {
namespace {

class NicFabric final : public FabricUnderTest {
 public:
  explicit NicFabric(const nic::Profile& profile)
      : nics_{&machine_.add(nic::named("nic0", profile)), &machine_.add(nic::named("nic1", profile))},
        client_(nic::open(*nics_[0])),
        server_(nic::open(*nics_[1])) {}
  ~NicFabric() override {
    client_.reset();
    server_.reset();
    for (const nic::Nic* each : nics_) EXPECT_EQ(each->misuse, std::vector<std::string>{});
  }
  Device& client() override { return *client_; }
  Device& server() override { return *server_; }
  void pump() override {}
  int idle_rounds() const override { return 100; }
  std::size_t case_stride() const override { return 37; }

 private:
  nic::Machine machine_;
  nic::Nic* nics_[2];
  std::unique_ptr<Device> client_, server_;
};

std::vector<FabricFactory> fabrics() {
  std::vector<FabricFactory> all;
  for (const nic::Profile& profile : nic::for_suites())
    all.push_back({profile.name, [profile] { return std::make_unique<NicFabric>(profile); }});
  return all;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nic, FabricSuite, ::testing::ValuesIn(fabrics()), factory_name);

}  // namespace rdma_rpc::fabric::test

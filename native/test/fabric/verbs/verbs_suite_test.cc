// The fabric suite on real RDMA devices: those in RDMA_RPC_VERBS_DEVICES (two names with a comma), or the
// first one with itself. A program of its own, which says "not run" and why where there is none.
#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "fabric/fabric_suite.h"
#include "fabric/verbs_loader.h"

namespace rdma_rpc::fabric::test {
namespace {

VerbsOptions options_of(std::size_t which) {
  VerbsOptions options;
  options.retry_count = 2;  // a peer that is gone shows after 0.2 s
  const char* given = std::getenv("RDMA_RPC_VERBS_DEVICES");
  const std::string names = given == nullptr ? "" : given;
  const std::size_t comma = names.find(',');
  options.device =
      which == 0 || comma == std::string::npos ? names.substr(0, comma) : names.substr(comma + 1);
  return options;
}

class VerbsFabric final : public FabricUnderTest {
 public:
  VerbsFabric()
      : client_(open_verbs_device(options_of(0), &error_)),
        server_(open_verbs_device(options_of(1), &error_)) {}
  Device& client() override { return *client_; }
  Device& server() override { return *server_; }
  // The kernel carries out the requests: it has to get the processor.
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

}  // namespace

INSTANTIATE_TEST_SUITE_P(Verbs, FabricSuite,
                         ::testing::Values(FabricFactory{"devices",
                                                         [] { return std::make_unique<VerbsFabric>(); }}),
                         factory_name);

}  // namespace rdma_rpc::fabric::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
    std::string error;
    if (rdma_rpc::fabric::open_verbs_device(rdma_rpc::fabric::test::options_of(which), &error) == nullptr) {
      std::printf("verbs_test: Skipped\nnot run: %s\n", error.c_str());
      return 77;
    }
  }
  return RUN_ALL_TESTS();
}

// Runs the tests that need real devices. On a machine without one, this program prints "not run" and the
// reason. When a test starts it as `verbs_faults_test --peer FD END`, it is the other process of that test
// (peer_process.h).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs/devices/ends.h"
#include "verbs/peer/peer_process.h"

namespace {

using rdma_rpc::session::test::Ends;
using rdma_rpc::session::test::kClientEnd;
using rdma_rpc::session::test::kServerEnd;
using rdma_rpc::session::test::open_device;
using rdma_rpc::session::test::options_of;
using rdma_rpc::session::test::over_tcp;

/// Opens devices before the first test counts descriptors, because the libraries keep some of them open.
class WarmUp final : public testing::Environment {
  /// The first connection in a guest that has just started, on a busy host, may take longer than the limit of
  /// the others.
  static std::shared_ptr<rdma_rpc::fabric::Device> open(std::size_t end) {
    if (over_tcp()) return open_device(end);
    rdma_rpc::fabric::VerbsOptions options = options_of(end);
    options.connect_timeout_ms = 25'000;
    std::string error;
    std::shared_ptr<rdma_rpc::fabric::Device> device = rdma_rpc::fabric::open_verbs_device(options, &error);
    EXPECT_NE(device, nullptr) << error;
    return device;
  }
  void SetUp() override {
    Ends ends(open(kClientEnd), open(kServerEnd));
    ends.expect_works(ends.connect());
    EXPECT_EQ(ends.finish(), std::vector<std::string>{});
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--peer") == 0) {
    return rdma_rpc::session::test::run_peer(std::atoi(argv[2]), std::strtoul(argv[3], nullptr, 10));
  }
  testing::InitGoogleTest(&argc, argv);
  if (const std::string why = rdma_rpc::session::test::why_no_devices(); !why.empty()) {
    std::printf("verbs_faults_test: Skipped\nnot run: %s\n", why.c_str());
    return 77;
  }
  testing::AddGlobalTestEnvironment(new WarmUp());
  return RUN_ALL_TESTS();
}

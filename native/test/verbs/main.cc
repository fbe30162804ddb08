// The tests that only real devices can give. Says "not run" and why where there are none. Started by itself
// as `verbs_faults_test --peer FD END` it is the other process of a test (peer_process.h).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs/ends.h"
#include "verbs/peer_process.h"

namespace {

/// What libraries open once and keep is open before the first test counts.
class WarmUp final : public testing::Environment {
  void SetUp() override {
    rdma_rpc::session::test::Ends ends;
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

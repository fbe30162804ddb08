// Runs these tests. On a machine without RDMA devices, it prints "not run" and the reason.
#include <gtest/gtest.h>

#include <cstdio>

#include "verbs/devices/devices.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string why = rdma_rpc::session::test::why_no_devices();
  if (why.empty()) return RUN_ALL_TESTS();
  std::printf("verbs_session_test: Skipped\nnot run: %s\n", why.c_str());
  return 77;
}

// The program of these tests. Says "not run" and why where there are no RDMA devices.
#include <gtest/gtest.h>

#include <cstdio>

#include "fabric/verbs/verbs_devices.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string why = rdma_rpc::fabric::test::why_not_run(rdma_rpc::fabric::VerbsConnect::automatic);
  if (why.empty()) return RUN_ALL_TESTS();
  std::printf("verbs_session_test: Skipped\nnot run: %s\n", why.c_str());
  return 77;
}

// On some fabrics, peers can still write to receives after a frame has arrived. The session then reads frames
// from a copy.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

TEST(KeptAccess, ReceivedFramesAreReadFromACopy) {
  PairOptions options = immediate();
  options.inflight_max = 8;
  options.sim.capabilities.peers_keep_access = true;
  Pair pair(options);
  // The calls are a small and a large request, and a request that waits for memory and therefore releases its
  // receive.
  EXPECT_TRUE(pair.complete({}).answered());
  EXPECT_TRUE(pair.complete({.request_bytes = 5000, .response_bytes = 5000}).answered());
  const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
  const std::uint64_t id = pair.start({.request_bytes = 2000});
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 1u);
  pair.server.context->arena().release(hog);
  pair.run();
  EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

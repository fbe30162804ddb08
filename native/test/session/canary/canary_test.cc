// Tests the tests themselves. This program is built with RDMA_RPC_CANARY, a bug planted in the session: a
// cancelled call ends at once, while the server may still write to its memory. The oracle must find the bug.
#include <gtest/gtest.h>

#include <algorithm>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

TEST(Canary, AnEndBeforeTheRevocationIsFound) {
  std::size_t found = 0, worlds = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (int n = 0; n < 40; ++n, ++worlds) {
      Pair pair(seeded(seed));
      const std::uint64_t id =
          pair.start({.request_bytes = 10, .response_bytes = 5000, .given_reply_buffer = 5000});
      for (int i = 0; i < n; ++i) pair.step();
      pair.client.cancel(id);
      const std::vector<std::string> violations = pair.finish();
      found += std::find(violations.begin(), violations.end(), "memory of a call changed after its end") !=
               violations.end();
    }
  }
  EXPECT_GT(found, 0u) << "none of " << worlds << " worlds showed the planted bug";
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Sequence numbers (32 bits), generations (20 bits) and tokens (31 bits) begin just below their wrap. The
// results must be the same as elsewhere. Every kind of call crosses the wrap, with cancels, so that late
// responses to the last generation meet calls of the first one.
#include <gtest/gtest.h>

#include <random>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

TEST(Wraps, MakeNoDifference) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    PairOptions options = seeded(seed, seed % 2 == 0 ? immediate() : PairOptions{});
    options.context.counters_start = 0xffffffffu - static_cast<std::uint32_t>(random() % 40);
    options.inflight_max = 2;
    Pair pair(options);
    std::vector<std::uint64_t> ids;
    std::size_t bulk = 0;
    for (int i = 0; i < 120; ++i) {
      const bool large = random() % 2 == 0;
      const std::uint64_t id = pair.start({.request_bytes = large ? 2000u : 20u,
                                           .request_gather_entries = 1 + random() % 3,
                                           .response_bytes = random() % 3 == 0 ? 3000u : 20u,
                                           .method = 1 + static_cast<std::uint32_t>(random() % 3)});
      if (id != 0) ids.push_back(id);
      bulk += id != 0 && large;
      if (random() % 3 == 0) pair.client.cancel(ids[random() % ids.size()]);
      for (std::uint64_t steps = random() % 12; steps > 0; --steps) pair.step();
    }
    pair.run();
    EXPECT_GT(bulk, 10u);
    EXPECT_EQ(pair.at_client().error(), "");
    EXPECT_EQ(pair.at_server().error(), "");
    for (const std::uint64_t id : ids)
      EXPECT_GE(pair.call(id).token, 0) << "a token must not look like a refusal";
    ASSERT_EQ(pair.finish(), Violations{});
  }
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Send queues that accept only the first work requests of a post, or none. The others are moved up and posted
// again, and work requests that are prepared later must not overwrite them.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "session/sides/audit.h"
#include "session/sides/pair.h"
#include "verbs/devices/hooked_device.h"

namespace rdma_rpc::session::test {
namespace {

/// Two sides whose posts are accepted only in part.
struct CutPair {
  CutPair(std::uint64_t seed, std::size_t length, const PairOptions& options)
      : world(seeded(seed, options).sim),
        client(ledger, device("client", length), options.context),
        server(ledger, device("server", length), options.context) {
    connect(client, client_session, server, server_session, options);
  }
  std::shared_ptr<fabric::Device> device(const char* name, std::size_t length) {
    auto hooks = std::make_shared<Hooks>();
    hooks->takes = [this, length, posts = 0u](std::span<const fabric::SendWr> requests) mutable {
      // A bind is posted alone, and only when there is room, because its key is needed at once. The same
      // holds for the last request of a session that ends.
      if (ends || requests[0].opcode == fabric::Opcode::bind_mw) return requests.size();
      return ++posts % 4 == 0 ? std::size_t{0} : length;
    };
    return std::make_shared<HookedDevice>(world.open_device(name), hooks);
  }
  void step() {
    world.step();
    client.turn(world.now_ns());
    server.turn(world.now_ns());
  }

  bool ends = false;
  Ledger ledger;
  fabric::SimWorld world;
  Side client, server;
  std::uint32_t client_session = 0, server_session = 0;
};

class CutPosts : public testing::TestWithParam<std::size_t> {};

TEST_P(CutPosts, LoseChangeAndDoubleNothing) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    PairOptions options = seed % 2 == 0 ? immediate() : PairOptions{};
    options.inflight_max = 24;
    options.context.send_slots = 64;
    CutPair pair(seed, GetParam(), options);
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 120; ++i) {
      // Many calls at once, so that frames of all kinds are prepared for one post.
      for (std::uint64_t batch = random() % 8; batch > 0; --batch) {
        const std::uint64_t id = pair.client.start(
            pair.client_session, {.request_bytes = random() % 4 == 0 ? random() % 5000 : random() % 60,
                                  .response_bytes = random() % 2 == 0 ? random() % 5000 : random() % 60,
                                  .answer = random() % 2 == 0 ? Answer::later : Answer::now,
                                  .method = 1 + static_cast<std::uint32_t>(random() % 4)});
        if (id != 0) ids.push_back(id);
      }
      for (std::uint64_t batch = random() % 4; batch > 0 && !ids.empty(); --batch) {
        if (random() % 3 == 0) pair.client.cancel(ids[random() % ids.size()]);
        if (pair.server.unanswered() != 0) pair.server.answer(random() % pair.server.unanswered());
      }
      for (std::uint64_t steps = random() % 5; steps > 0; --steps) pair.step();
    }
    for (int round = 0; round < 400 && pair.ledger.open() != 0; ++round) {
      ASSERT_TRUE(run_world(pair.world, {&pair.client, &pair.server}));
      while (pair.server.answer()) {
      }
    }
    EXPECT_EQ(pair.client.why_down(pair.client_session), "");
    EXPECT_EQ(pair.server.why_down(pair.server_session), "");
    pair.ends = true;
    for (auto& [side, session] :
         {std::pair{&pair.client, pair.client_session}, std::pair{&pair.server, pair.server_session}}) {
      if (Session* open = side->context->find(session)) open->close("the test is over");
    }
    ASSERT_TRUE(run_world(pair.world, {&pair.client, &pair.server}));
    pair.client.release_blocks();
    pair.server.release_blocks();
    audit(pair.client, "client");
    audit(pair.server, "server");
    ASSERT_EQ(pair.ledger.violations(), std::vector<std::string>{});
  }
}

INSTANTIATE_TEST_SUITE_P(, CutPosts, testing::Range<std::size_t>(1, kPostBatch + 1));

}  // namespace
}  // namespace rdma_rpc::session::test

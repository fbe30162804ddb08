// Tests send queues that accept only the first work requests of a post, or none. The refused ones are moved
// up and posted again, and work requests that are prepared later must not overwrite them.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>

#include "session/sides/audit.h"
#include "session/sides/pair.h"
#include "verbs/devices/hooked_device.h"

namespace rdma_rpc::session::test {
namespace {

/// Two sides whose posts are accepted only in part.
struct CutPair {
  using Takes = std::function<std::size_t()>;
  CutPair(const PairOptions& options, const Takes& takes)
      : world(options.sim),
        client(ledger, device("client", takes), options.context),
        server(ledger, device("server", takes), options.context) {
    connect(client, client_session, server, server_session, options);
  }
  std::shared_ptr<fabric::Device> device(const char* name, const Takes& takes) {
    auto hooks = std::make_shared<Hooks>();
    hooks->takes = [this, takes](std::span<const fabric::SendWr> requests) {
      // A bind is posted alone, and only when there is room, because its key is needed at once. The last work
      // request of a session that ends is also posted alone.
      return ends || requests[0].opcode == fabric::Opcode::bind_mw ? requests.size() : takes();
    };
    return std::make_shared<HookedDevice>(world.open_device(name), hooks);
  }
  /// Closes both sessions, and returns the violations of rules.
  std::vector<std::string> finish() {
    EXPECT_EQ(client.why_down(client_session), "");
    EXPECT_EQ(server.why_down(server_session), "");
    ends = true;
    for (auto& [side, session] : {std::pair{&client, client_session}, std::pair{&server, server_session}}) {
      if (Session* open = side->context->find(session)) open->close("the test is over");
    }
    EXPECT_TRUE(run_world(world, {&client, &server}));
    client.release_blocks();
    server.release_blocks();
    audit(client, "client");
    audit(server, "server");
    return ledger.violations();
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
    CutPair pair(seeded(seed, options), [length = GetParam(), posts = 0u]() mutable {
      return ++posts % 4 == 0 ? std::size_t{0} : length;
    });
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
    ASSERT_EQ(pair.finish(), std::vector<std::string>{});
  }
}

INSTANTIATE_TEST_SUITE_P(, CutPosts, testing::Range<std::size_t>(1, kPostBatch + 1));

/// One CANCEL has waited for room in the send queue, while the server had no turn. When a post is accepted
/// again, CANCELs of other calls are posted before it. They must leave the waiting CANCEL its credit.
/// Otherwise the waiting CANCEL would use the credit of another call.
TEST(BlockedPosts, LeaveACancelThatWaitsForRoomItsReservedCredit) {
  RDMA_RPC_NEEDS_WINDOWS();  // with staging memory nothing is lent
  PairOptions options = immediate();
  options.inflight_max = 32;
  options.call_slots = 64;
  options.context.send_slots = 128;
  options.credit_pool = false;  // then there are fewer credits than requests of a full post
  bool blocked = false;
  CutPair pair(options, [&blocked] { return blocked ? std::size_t{0} : std::size_t{kPostBatch}; });
  ASSERT_TRUE(run_world(pair.world, {&pair.client, &pair.server}));
  std::vector<std::uint64_t> lent, small;
  const auto start = [&pair](std::vector<std::uint64_t>& ids, std::size_t bytes) {
    ids.push_back(pair.client.start(pair.client_session, {.request_bytes = bytes, .answer = Answer::later}));
  };
  for (int i = 0; i < 2; ++i) start(lent, 2000);
  pair.client.flush();
  blocked = true;
  for (std::uint32_t i = 0; i < kPostBatch; ++i) start(small, 20);
  pair.client.flush();
  pair.client.cancel(lent[0], boundary::Reason::deadline);
  blocked = false;
  // The calls are cancelled without a flush between them, as JS cancels calls whose deadlines have passed.
  Session& session = *pair.client.context->find(pair.client_session);
  for (const std::uint64_t id : small) session.cancel(pair.ledger.at(id).slot, boundary::Reason::deadline);
  pair.client.flush();
  pair.client.cancel(lent[1], boundary::Reason::deadline);
  let_pass(pair.world, {&pair.client}, kSettleGraceNs + 5'000'000);
  for (const std::uint64_t id : lent) EXPECT_EQ(pair.ledger.at(id).reason, boundary::Reason::deadline) << id;
  for (int round = 0; round < 4 && pair.ledger.open() != 0; ++round) {
    ASSERT_TRUE(run_world(pair.world, {&pair.client, &pair.server}));
    while (pair.server.answer()) {
    }
  }
  EXPECT_EQ(pair.ledger.open(), 0u);
  EXPECT_EQ(pair.finish(), std::vector<std::string>{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

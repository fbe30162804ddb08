// Runs whole sessions from a seed, with a random load of every kind of call and one random failure after
// another. The oracle checks all rules. A failure names its seed, and the same seed gives the same run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "seal/libcrypto.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

class Life {
 public:
  explicit Life(std::uint64_t seed) : random_(seed), pair_(options(seed)) {}

  /// Performs this number of actions. Returns the number of calls that got a response.
  std::size_t run(int actions) {
    for (int i = 0; i < actions; ++i) {
      act();
      for (std::uint64_t steps = any(5); steps > 0; --steps) pair_.step();
    }
    pair_.hold_client(false);
    pair_.hold_server(false);
    for (int round = 0; round < 200 && pair_.ledger.open() != 0; ++round) {
      pair_.run();
      if (!pair_.server.answer()) break;
      while (pair_.server.answer()) {
      }
    }
    EXPECT_EQ(pair_.finish(), Violations{});
    std::size_t answered = 0;
    for (std::uint64_t id = 1; id <= pair_.ledger.size(); ++id) answered += pair_.call(id).answered();
    return answered;
  }

 private:
  static PairOptions options(std::uint64_t seed) {
    PairOptions options = seeded(seed, seed % 5 == 0 ? immediate() : PairOptions{});
    options.sim.connects_late = seed % 3 == 0;
    // Received frames are copied, short ones to the buffers that all sessions share.
    options.sim.capabilities.peers_keep_access = seed % 4 == 2;
    // (Sealed messages are copied first, so they take more memory. If there is no libcrypto, sealing_test
    // reports it.)
    options.sealed = seed % 6 == 5 && !seal::ciphers().empty();
    if (seed % 8 == 3) options.context.exposure = Exposure::staging;
    if (seed % 8 == 7) options.context.exposure = Exposure::shared;
    if (seed % 3 == 1) options.segmented_bytes = 4096;
    options.inlined = seed % 2 == 0;
    options.staging_bytes = std::size_t{8 + seed % 256} << 10;
    options.inflight_max = 1 + static_cast<std::uint32_t>(seed % 7);
    if (seed % 4 == 1) options.call_slots = options.inflight_max + static_cast<std::uint32_t>(seed % 33);
    options.context.send_slots = 3 + static_cast<std::uint32_t>(seed % 11);
    options.context.arena.budget_bytes = std::size_t{128 + seed % 512} << 10;
    options.context.mr_cache.max_entries = seed % 13;
    options.context.read_bytes_max = 1 + seed * 7919 % 200'000;
    options.context.counters_start = static_cast<std::uint32_t>(seed) * 0x9e3779b9u;
    return options;
  }
  std::uint64_t any(std::uint64_t n) { return random_() % n; }

  void act() {
    switch (any(24)) {
      default:
        if (const std::uint64_t id = pair_.start(spec())) last_ = id;
        return;
      case 14:
      case 15:
      case 16:
        if (last_ != 0) pair_.client.cancel(1 + any(last_));
        return;
      case 17:
      case 18:
      case 19:
        if (pair_.server.unanswered() != 0) pair_.server.answer(any(pair_.server.unanswered()));
        return;
      case 20:
        pair_.world.advance(any(30'000'000));
        return;
      case 21:
        return any(2) == 0 ? pair_.hold_client(any(2) == 0) : pair_.hold_server(any(2) == 0);
      case 22:
        if (any(6) != 0) return;
        return pair_.world.fail(
            {.nth = 1 + any(30),
             .status = any(2) == 0 ? fabric::WcStatus::general_err : fabric::WcStatus::rem_access_err});
      case 23:
        if (any(3) == 0) pair_.world.fail_nth(fabric::SimResource::window, 1 + any(4));
        if (any(3) == 0) pair_.world.fail_nth(fabric::SimResource::region, 1 + any(4));
        if (any(3) == 0) pair_.world.fail_nth(fabric::SimResource::memory, 1 + any(4));
        if (any(20) != 0) return;
        Side& side = any(2) == 0 ? pair_.client : pair_.server;
        Session* session =
            side.context->find(&side == &pair_.client ? pair_.client_session : pair_.server_session);
        if (session != nullptr) session->close("a random end");
        return;
    }
  }

  CallSpec spec() {
    const std::size_t sizes[] = {0, 20, 250, 900, 2000, 9000, 60'000};
    return {.request_bytes = sizes[any(7)],
            .request_gather_entries = 1 + any(4),
            .request_in_arena = any(2) == 0,
            .short_gather_entry_bytes = any(2) == 0 ? any(300) : 0,
            .in_scratch = any(2) == 0,
            .response_bytes = sizes[any(7)],
            .response_gather_entries = 1 + any(4),
            .response_in_arena = any(2) == 0,
            .given_reply_buffer = any(5) == 0 ? sizes[4 + any(3)] : 0,
            .status = 0,
            .answer = any(2) == 0 ? Answer::later : Answer::now,
            .method = 1 + static_cast<std::uint32_t>(any(3)),
            .timeout_us = any(4) == 0 ? 1 + static_cast<std::uint32_t>(any(40'000)) : 0,
            .part = any(3) == 0,
            .aligned = any(2) == 0,
            .reply_buffer_only = any(3) == 0};
  }

  std::mt19937_64 random_;
  Pair pair_;
  std::uint64_t last_ = 0;
};

/// RDMA_RPC_SEEDS=20000 runs more seeds, for example over night.
std::uint64_t seed_count() {
  const char* given = std::getenv("RDMA_RPC_SEEDS");
  return given == nullptr ? 1500 : std::strtoull(given, nullptr, 10);
}

TEST(Seeds, HoldEveryPromise) {
  std::size_t answered = 0;
  for (std::uint64_t seed = 1; seed <= seed_count(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    answered += Life(seed).run(80);
    if (HasFailure()) return;
  }
  EXPECT_GT(answered, seed_count() * 5);  // most calls must not have been hit by a failure
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests protection modes: the mode that a session uses, the data that each mode moves, and that calls behave
// alike in all modes. hostile/server_test.cc tests what a hostile peer can reach.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
using Violations = std::vector<std::string>;

const Exposure kModes[] = {Exposure::automatic, Exposure::staging, Exposure::shared};

PairOptions in_mode(Exposure exposure, fabric::Capabilities capabilities = tested_device()) {
  PairOptions options = immediate();
  options.sim.capabilities = capabilities;
  options.context.exposure = exposure;
  return options;
}

TEST(Exposures, AreChosenByWhatTheDeviceHasOrByName) {
  const auto security = [](const PairOptions& options) {
    return to_string(Pair(options).at_client().security());
  };
  EXPECT_STREQ(security(in_mode(Exposure::automatic, fabric::sim_capabilities())), "window");
  EXPECT_STREQ(security(in_mode(Exposure::automatic, iwarp_device())), "staging");
  EXPECT_STREQ(security(in_mode(Exposure::staging)), "staging");
  EXPECT_STREQ(security(in_mode(Exposure::shared)), "shared");
}

TEST(Exposures, ByWindowsNeedADeviceThatHasThem) {
  const PairOptions options = in_mode(Exposure::window, iwarp_device());
  fabric::SimWorld world(options.sim);
  std::string error;
  EXPECT_EQ(Context::open(world.open_device("device"), options.context, &error), nullptr);
  EXPECT_NE(error.find("no type-2 memory windows"), std::string::npos) << error;
}

TEST(Registration, OnDemandIsRefusedByADeviceThatMustPin) {
  fabric::Capabilities capabilities = tested_device();
  capabilities.pins_memory = true;
  for (const bool can : {false, true}) {
    capabilities.on_demand = can;
    PairOptions options = in_mode(Exposure::automatic, capabilities);
    options.context.mr_cache.on_demand = true;
    fabric::SimWorld world(options.sim);
    std::string error;
    EXPECT_EQ(Context::open(world.open_device("device"), options.context, &error) != nullptr, can);
    EXPECT_EQ(error.find("no on-demand paging (option registration") != std::string::npos, !can) << error;
  }
}

TEST(Exposures, AllCarryTheSameCalls) {
  for (const Exposure mode : kModes) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(std::string(to_string(mode)) + ", seed " + std::to_string(seed));
      PairOptions options = in_mode(mode);
      options.sim.mode = fabric::SimMode::scheduled;
      options.sim.seed = seed;
      Pair pair(options);
      for (const CallSpec& spec :
           {CallSpec{.request_bytes = 5000, .request_gather_entries = 3},
            CallSpec{.response_bytes = 5000, .response_gather_entries = 3},
            CallSpec{.request_bytes = 70'000, .request_in_arena = true, .given_reply_buffer = 9000},
            CallSpec{.request_bytes = 9000, .response_bytes = 70'000, .given_reply_buffer = 4096}}) {
        EXPECT_NE(pair.start(spec), 0u);
      }
      pair.run();
      for (std::uint64_t id = 1; id <= pair.ledger.size(); ++id) EXPECT_TRUE(pair.call(id).answered());
      EXPECT_EQ(pair.finish(), Violations{});
    }
  }
}

TEST(Exposures, ByWindowsAloneInvalidate) {
  for (const Exposure mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Pair pair(in_mode(mode));
    EXPECT_TRUE(pair.complete({.request_bytes = 5000, .response_bytes = 5000}).answered());
    const bool windows = mode == Exposure::automatic && has_windows();
    EXPECT_EQ(pair.world.counters().of(fabric::Opcode::bind_mw), windows ? 2u : 0u);
    EXPECT_EQ(pair.world.counters().of(fabric::Opcode::local_inv), windows ? 1u : 0u);
    EXPECT_EQ(pair.world.counters().of(fabric::Opcode::send_with_inv), windows ? 1u : 0u);
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Exposures, ByStagingWaitForRoomInOrder) {
  PairOptions options = in_mode(Exposure::staging);
  options.inflight_max = 16;
  options.staging_bytes = 64 << 10;
  Pair pair(options);
  for (int i = 0; i < 16; ++i) {
    EXPECT_NE(pair.start({.request_bytes = 40'000, .response_bytes = 40'000}), 0u);
  }
  pair.run();
  for (std::uint64_t id = 1; id <= 16; ++id) EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Exposures, ByStagingRefuseWhatTheirMemoryCanNeverHold) {
  PairOptions options = in_mode(Exposure::staging);
  options.staging_bytes = 64 << 10;
  Pair pair(options);
  const CallRecord& request = pair.complete({.request_bytes = 65'537});
  EXPECT_EQ(request.kind, EvKind::failed);
  EXPECT_EQ(request.reason, Reason::staging);
  EXPECT_EQ(request.processed, Processed::no);
  const CallRecord& response = pair.complete({.response_bytes = 65'537});
  EXPECT_EQ(response.status, 8u);
  EXPECT_TRUE(pair.complete({.request_bytes = 65'536, .response_bytes = 65'536}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Exposures, OfEachModeHoldACallUntilThePeerHasAnsweredItsCancel) {
  for (const Exposure mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Pair pair(in_mode(mode));
    const std::uint64_t id =
        pair.start({.request_bytes = 5000, .given_reply_buffer = 6000, .answer = Answer::later});
    pair.run();
    pair.client.cancel(id);
    let_pass(pair.world, {&pair.client}, 1'000'000'000);
    const bool copied = pair.at_client().security() == Exposure::staging;
    EXPECT_TRUE(pair.call(id).ended());
    EXPECT_EQ(pair.call(id).held, boundary::pending_slot | (copied ? 0 : boundary::pending_reply_buffer));
    pair.run();
    EXPECT_FALSE(pair.call(id).holds());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Queues, AreAsDeepAsTheCallsInFlightNeedAndTheDeviceAllows) {
  EXPECT_EQ(SendQueue::depth_for(1, 4096), 64u);
  EXPECT_EQ(SendQueue::depth_for(33, 4096), 128u);
  EXPECT_EQ(SendQueue::depth_for(256, 4096), 512u);
  EXPECT_EQ(SendQueue::depth_for(4096, 4096), 512u);
  EXPECT_EQ(SendQueue::depth_for(256, 300), 256u);
  EXPECT_LT(SendQueue::depth_for(256, 63), kSendQueueDepthMin);
}

TEST(Writes, AreNoLongerThanIsGoodForTheDevice) {
  constexpr std::size_t kBytes = 30'000;
  for (const std::uint64_t most : {std::uint64_t{4096}, std::uint64_t{10'000}, ~std::uint64_t{0}}) {
    PairOptions options = in_mode(Exposure::shared);
    options.sim.capabilities.max_write_bytes = most;
    Pair pair(options);
    EXPECT_TRUE(pair.complete({.response_bytes = kBytes, .given_reply_buffer = kBytes}).answered());
    EXPECT_EQ(pair.world.counters().of(fabric::Opcode::rdma_write),
              most > kBytes ? 1 : (kBytes + most - 1) / most);
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Reads, OfAFewBytesStayOnAPageWhereTheDeviceNeedsThat) {
  constexpr std::uint32_t kShort = 32;
  for (const std::uint32_t most : {0u, kShort}) {
    for (const std::uint32_t bytes :
         {2u, 20u, kShort, kShort + 1, kChunkBytes + 20, kChunkBytes + kShort + 1}) {
      const std::uint32_t tail = bytes % kChunkBytes, chunks = bytes / kChunkBytes + 1;
      for (const std::uint32_t beyond : {1u, tail - 1, tail}) {
        SCOPED_TRACE(std::to_string(most) + ": " + std::to_string(beyond) + " of " + std::to_string(bytes));
        PairOptions options = in_mode(Exposure::shared);
        options.sim.capabilities.one_page_read_max = most;
        Pair pair(options);
        EXPECT_TRUE(pair.complete({.request_bytes = bytes,
                                   .given_reply_buffer = 4096,
                                   .beyond_page = static_cast<std::uint8_t>(beyond)})
                        .answered());
        const bool broken = tail <= most && beyond != tail;
        EXPECT_EQ(pair.world.counters().of(fabric::Opcode::rdma_read), chunks + (broken ? 1 : 0));
        EXPECT_EQ(pair.finish(), Violations{});
      }
    }
  }
}

TEST(Queues, OfADeviceThatAllowsFewCarryAFullLoad) {
  for (const fabric::SimMode mode : {fabric::SimMode::immediate, fabric::SimMode::scheduled}) {
    PairOptions options;
    options.sim.mode = mode;
    options.sim.capabilities.max_qp_wr = 64;
    options.sim.capabilities.max_rd_atomic = 1;
    options.sim.capabilities.max_msg_bytes = 4096;
    options.inflight_max = 48;
    options.context.send_slots = 96;
    Pair pair(options);
    for (int i = 0; i < 48; ++i) {
      const std::size_t bytes = i % 3 == 0 ? 30'000 : 20;
      EXPECT_NE(pair.start({.request_bytes = bytes, .request_gather_entries = 5, .response_bytes = bytes}),
                0u);
    }
    pair.run();
    for (std::uint64_t id = 1; id <= 48; ++id) EXPECT_TRUE(pair.call(id).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

}  // namespace
}  // namespace rdma_rpc::session::test

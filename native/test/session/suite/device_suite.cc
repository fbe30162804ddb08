// Tests sessions between two devices in real time, in every mode that the devices support. The tests make
// calls of every size and kind, cancel calls in each phase, and end sessions under load. The oracle of the
// session tests checks all rules.
#include "session/suite/device_suite.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Reason;

/// The list has one call of each size class and direction.
const CallSpec kMixed[] = {
    {},
    {.request_bytes = 700, .response_bytes = 700},
    {.request_bytes = 9000, .request_gather_entries = 3},
    {.request_bytes = 50'000, .request_in_arena = true},
    {.response_bytes = 50'000, .response_gather_entries = 3},
    {.request_bytes = 40'000, .request_gather_entries = 2, .response_bytes = 40'000},
    {.request_bytes = 20, .response_bytes = 50'000, .given_reply_buffer = 60'000},
    {.request_bytes = 20, .response_bytes = 50'000, .given_reply_buffer = 4096},
};

}  // namespace

TEST_P(DeviceSession, SaysHowItExposesMemory) {
  const bool windows = pair.client.device->capabilities().windows;
  const Exposure best = windows ? Exposure::window : Exposure::staging;
  EXPECT_EQ(pair.client.session(pair.connect().client).security(),
            GetParam().exposure == Exposure::automatic ? best : GetParam().exposure);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(DeviceSession, CarriesCallsOfEverySizeAndKind) {
  const Link link = pair.connect();
  const std::size_t inline_max = pair.client.device->capabilities().max_inline;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, inline_max - 48, inline_max, std::size_t{990}, std::size_t{993},
        std::size_t{1025}, std::size_t{65'537}}) {
    SCOPED_TRACE(bytes);
    EXPECT_TRUE(pair.complete(link, {.request_bytes = bytes, .response_bytes = bytes}).answered());
  }
  for (const CallSpec& spec : kMixed) EXPECT_TRUE(pair.complete(link, spec).answered());
  EXPECT_TRUE(
      pair.complete(link, {.request_bytes = 40'000, .request_gather_entries = 40, .response_bytes = 1})
          .answered());
  EXPECT_TRUE(
      pair.complete(link, {.request_bytes = 5 * kChunkBytes / 2 + 3, .request_in_arena = true}).answered());
  EXPECT_TRUE(
      pair.complete(link, {.response_bytes = 5 * kChunkBytes / 2 + 3, .response_in_arena = true}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(DeviceSession, CarriesMessagesInSegments) {
  const Link link = pair.connect(64, 0, true);
  const std::size_t most = pair.client.session(link.client).segmented_bytes() - sizeof(Descriptor);
  for (const std::size_t bytes :
       {std::size_t{993}, std::size_t{2016}, std::size_t{2017}, std::size_t{5000}, most}) {
    SCOPED_TRACE(bytes);
    EXPECT_TRUE(pair.complete(link, {.request_bytes = bytes, .response_bytes = bytes}).answered());
  }
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < 32; ++i)
    ids.push_back(pair.start(link, {.request_bytes = 1000 + 200 * i, .response_bytes = 8000 - 200 * i}));
  pair.until([&] { return pair.ledger.open() == 0; }, "the end of 32 calls");
  for (const std::uint64_t id : ids) EXPECT_TRUE(id != 0 && pair.call(id).answered());
  EXPECT_GE(pair.server.reassembled_messages, 5);
  EXPECT_EQ(pair.finish(), Violations{});
}

namespace {
/// Soft-iWARP copies up to 32 bytes in a special way.
constexpr std::size_t kShort[] = {2, 3, 16, 20, 31, 32, 33};
}  // namespace

TEST_P(DeviceSession, CarriesShortMessagesThatCrossAPage) {
  const Link link = pair.connect();
  for (const std::size_t bytes : kShort) {
    for (std::uint8_t beyond = 1; beyond < bytes; ++beyond) {
      EXPECT_TRUE(pair.complete(link, {.request_bytes = bytes,
                                       .response_bytes = bytes,
                                       .response_bulk = true,
                                       .given_reply_buffer = 4096,
                                       .beyond_page = beyond})
                      .answered());
    }
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(DeviceSession, CarriesLongMessagesWhoseLastFewBytesCrossAPage) {
  const Link link = pair.connect();
  for (const std::size_t bytes : {3u, 20u, 32u}) {
    for (const std::size_t beyond : {std::size_t{1}, bytes - 1}) {
      EXPECT_TRUE(pair.complete(link, {.request_bytes = kChunkBytes + bytes,
                                       .response_bytes = kChunkBytes + bytes,
                                       .beyond_page = static_cast<std::uint8_t>(beyond)})
                      .answered());
    }
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(DeviceSession, CarriesManyAtOnce) {
  const Link link = pair.connect(32);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < 32; ++i) {
    ids.push_back(pair.start(link, kMixed[i % std::size(kMixed)]));
    EXPECT_NE(ids.back(), 0u);
  }
  pair.until([&] { return pair.ledger.open() == 0; }, "the end of 32 calls");
  for (const std::uint64_t id : ids) EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

namespace {
const CallSpec kToCancel[] = {
    {},
    {.request_bytes = 700, .answer = Answer::later},
    {.request_bytes = 200'000, .request_gather_entries = 3},
    {.request_bytes = 3000, .answer = Answer::later},
    {.response_bytes = 200'000},
    {.request_bytes = 20, .response_bytes = 50'000, .given_reply_buffer = 60'000},
};
}  // namespace

TEST_P(DeviceSession, SurvivesCallsCancelledAfterEachStep) {
  const Link link = pair.connect();
  for (const CallSpec& spec : kToCancel) {
    for (int steps = 0; steps < 12; ++steps) {
      SCOPED_TRACE(std::to_string(spec.request_bytes) + " bytes, after " + std::to_string(steps) + " steps");
      const std::uint64_t id = pair.start(link, spec);
      for (int i = 0; i < steps; ++i) pair.step();
      const bool ended = pair.call(id).ended();
      pair.client.cancel(id, steps % 2 == 0 ? Reason::cancelled : Reason::deadline);
      pair.until([&] { return pair.call(id).ended(); }, "the end of a call that was given up");
      if (!ended && pair.call(id).kind == EvKind::failed) {
        EXPECT_EQ(pair.call(id).reason, steps % 2 == 0 ? Reason::cancelled : Reason::deadline);
      }
      while (pair.server.answer()) {
      }
      ASSERT_TRUE(pair.complete(link, {}).answered()) << pair.why_down(link);
    }
  }
  for (const CallSpec& spec : kMixed) EXPECT_TRUE(pair.complete(link, spec).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(DeviceSession, EndsEveryCallWhenItEndsAfterEachStep) {
  for (int steps = 0; steps < 10; ++steps) {
    SCOPED_TRACE("after " + std::to_string(steps) + " steps");
    const Link link = pair.connect();
    std::vector<std::uint64_t> ids;
    for (const CallSpec& spec : kToCancel) ids.push_back(pair.start(link, spec));
    for (int i = 0; i < steps; ++i) pair.step();
    (steps % 2 == 0 ? pair.client.session(link.client) : pair.server.session(link.server)).close("enough");
    pair.until([&] { return pair.client.is_down(link.client) && pair.server.is_down(link.server); },
               "the end of both sessions");
    for (const std::uint64_t id : ids) EXPECT_TRUE(pair.call(id).ended());
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace rdma_rpc::session::test

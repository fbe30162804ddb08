// Tests successful calls: every size, every way in which a payload is transferred, every kind of reply
// buffer, in both modes of the simulated fabric.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
using Violations = std::vector<std::string>;

class Calls : public testing::TestWithParam<fabric::SimMode> {
 protected:
  PairOptions pair_options() {
    PairOptions options;
    options.sim.mode = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Sim, Calls, testing::Values(fabric::SimMode::immediate, fabric::SimMode::scheduled),
                         [](const auto& info) {
                           return info.param == fabric::SimMode::immediate ? "Immediate" : "Scheduled";
                         });

void expect_ok(const CallRecord& call) {
  EXPECT_EQ(call.kind, EvKind::settled);
  EXPECT_EQ(call.status, call.spec.status);
  EXPECT_EQ(call.processed, Processed::yes);
  EXPECT_EQ(call.began, 1);
  EXPECT_EQ(call.answer_bytes, call.spec.response_bytes);
}

TEST_P(Calls, OfEverySizeAroundTheInlineAndEagerLimits) {
  Pair pair(pair_options());
  const std::size_t inline_max = pair.client.device->capabilities().max_inline;
  for (const std::size_t around : {std::size_t{2}, inline_max, std::size_t{1024}}) {
    for (std::size_t bytes = around - 2 - std::min<std::size_t>(around - 2, 70); bytes <= around + 2;
         ++bytes) {
      SCOPED_TRACE(bytes);
      expect_ok(pair.complete({.request_bytes = bytes, .response_bytes = 7}));
      expect_ok(pair.complete({.request_bytes = 7, .response_bytes = bytes}));
    }
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, TravelInlineEagerOrBulkByTheirSize) {
  Pair pair(pair_options());
  const Stats& client = pair.client.context->stats();
  const Stats& server = pair.server.context->stats();
  expect_ok(pair.complete({.request_bytes = 8}));
  EXPECT_EQ(client.inline_sends, 1u);
  expect_ok(pair.complete({.request_bytes = 600}));
  EXPECT_EQ(client.eager_sends, 1u);
  EXPECT_EQ(server.bulk_reads, 0u);
  expect_ok(pair.complete({.request_bytes = 2000}));
  EXPECT_EQ(server.bulk_reads, 1u);
  EXPECT_EQ(server.bulk_read_bytes, 2000u);
  expect_ok(pair.complete({.response_bytes = 2000}));
  EXPECT_EQ(server.bulk_write_bytes, 2000u);
  EXPECT_EQ(client.reply_buffers_asked, 1u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, WithRequestsInAnyNumberOfGatherEntries) {
  for (const bool in_arena : {false, true}) {
    Pair pair(pair_options());
    for (std::size_t gather_entries = 1; gather_entries <= kGatherEntriesMax + 3; ++gather_entries) {
      SCOPED_TRACE(gather_entries);
      const std::uint64_t reads = pair.server.context->stats().bulk_reads;
      expect_ok(pair.complete(
          {.request_bytes = 5000, .request_gather_entries = gather_entries, .request_in_arena = in_arena}));
      // If a request has more entries than a frame can list, or in staging mode, the server reads it as one
      // copy.
      const bool copied = gather_entries > kGatherEntriesMax || !has_windows();
      EXPECT_EQ(pair.server.context->stats().bulk_reads - reads, copied ? 1 : gather_entries);
    }
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST_P(Calls, WithResponsesInAnyNumberOfGatherEntries) {
  for (const bool in_arena : {false, true}) {
    Pair pair(pair_options());
    for (std::size_t gather_entries = 1; gather_entries <= kGatherEntriesMax + 3; ++gather_entries) {
      SCOPED_TRACE(gather_entries);
      expect_ok(pair.complete({.response_bytes = 5000,
                               .response_gather_entries = gather_entries,
                               .response_in_arena = in_arena}));
    }
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST_P(Calls, OfNoBytesInMoreGatherEntriesThanAFrameHolds) {
  Pair pair(pair_options());
  // The reply buffer makes the request a bulk request.
  for (const bool in_arena : {false, true}) {
    expect_ok(pair.complete({.request_bytes = 0,
                             .request_gather_entries = kGatherEntriesMax + 1,
                             .request_in_arena = in_arena,
                             .given_reply_buffer = 2000}));
  }
  EXPECT_EQ(pair.server.context->stats().bulk_reads, 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, AnsweredByABulkResponseOfNoBytes) {
  Pair pair(pair_options());
  const CallRecord& call = pair.complete(
      {.response_bytes = 0, .response_gather_entries = kGatherEntriesMax + 1, .response_bulk = true});
  expect_ok(call);
  EXPECT_EQ(pair.server.context->stats().bulk_writes, 0u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, LargerThanOneWorkRequest) {
  Pair pair(pair_options());
  expect_ok(
      pair.complete({.request_bytes = 3 * kChunkBytes / 2 + 1, .response_bytes = 5 * kChunkBytes / 2 + 3}));
  EXPECT_EQ(pair.server.context->stats().bulk_reads, 2u);
  EXPECT_EQ(pair.server.context->stats().bulk_writes, (5 * kChunkBytes / 2) / kWriteChunkBytes + 1);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, WithAReplyBufferOfTheCaller) {
  struct {
    const char* name;
    std::size_t given, response;
    bool used, asked;
  } const table[] = {
      {"large enough", 5000, 5000, true, false},
      {"larger", 9000, 5000, true, false},
      {"for a response that fits a slot", 5000, 100, false, false},
      {"too small", 4096, 5000, false, true},
  };
  for (const auto& row : table) {
    for (const std::size_t request : {std::size_t{0}, std::size_t{100}, std::size_t{3000}}) {
      SCOPED_TRACE(std::string(row.name) + ", request of " + std::to_string(request));
      Pair pair(pair_options());
      const CallRecord& call = pair.complete(
          {.request_bytes = request, .response_bytes = row.response, .given_reply_buffer = row.given});
      expect_ok(call);
      EXPECT_EQ(call.answer_block == call.given_block, row.used);
      EXPECT_EQ(pair.client.context->stats().reply_buffers_asked, row.asked ? 1u : 0u);
      EXPECT_EQ(pair.finish(), Violations{});
    }
  }
}

TEST_P(Calls, AreOfferedAReplyBufferWhenTheMethodAnsweredLargeBefore) {
  Pair pair(pair_options());
  const Stats& stats = pair.client.context->stats();
  expect_ok(pair.complete({.response_bytes = 20'000, .method = 9}));
  EXPECT_EQ(stats.reply_buffers_asked, 1u);
  expect_ok(pair.complete({.response_bytes = 20'000, .method = 9}));
  EXPECT_EQ(stats.reply_buffers_asked, 1u);
  EXPECT_EQ(stats.reply_buffers_predicted, 1u);
  expect_ok(pair.complete(
      {.response_bytes = 40'000, .method = 9}));  // the prediction was too small, so the server asks again
  EXPECT_EQ(stats.reply_buffers_asked, 2u);
  expect_ok(pair.complete({.response_bytes = 10, .method = 9}));  // the offered reply buffer is not needed
  EXPECT_EQ(stats.reply_buffers_predicted, 3u);
  // The other method is not offered a reply buffer.
  expect_ok(pair.complete({.response_bytes = 10, .method = 8}));
  // This method has not yet answered a large request.
  expect_ok(pair.complete({.request_bytes = 20'000, .response_bytes = 10, .method = 9}));
  EXPECT_EQ(stats.reply_buffers_predicted, 3u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, AreOfferedAReplyBufferWhenTheMethodIsSaidToAnswerLarge) {
  Pair pair(pair_options());
  const Stats& stats = pair.client.context->stats();
  pair.client.context->expect_response(9, 20'000);
  expect_ok(pair.complete({.response_bytes = 20'000, .method = 9}));
  EXPECT_EQ(stats.reply_buffers_asked, 0u);
  EXPECT_EQ(stats.reply_buffers_predicted, 1u);
  // The declared size is only a hint. For a larger response, the server asks for memory, and the client
  // learns the size.
  expect_ok(pair.complete({.response_bytes = 40'000, .method = 9}));
  EXPECT_EQ(stats.reply_buffers_asked, 1u);
  expect_ok(pair.complete({.response_bytes = 40'000, .method = 9}));
  EXPECT_EQ(stats.reply_buffers_asked, 1u);
  // A declared size above the limit is ignored.
  pair.client.context->expect_response(10, 0xffffffff);
  expect_ok(pair.complete({.response_bytes = 20'000, .method = 10}));
  EXPECT_EQ(stats.reply_buffers_asked, 2u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, WithResponsesLargerThanTheArenaAreRefused) {
  PairOptions small = pair_options();
  small.context.arena = {.budget_bytes = 64 << 10, .chunk_bytes = 16 << 10};
  Pair pair(small);
  const CallRecord& call = pair.complete({.response_bytes = 100'000});
  EXPECT_EQ(call.kind, EvKind::settled);
  EXPECT_EQ(call.status, 8u);
  EXPECT_EQ(call.processed, Processed::yes);
  expect_ok(pair.complete({}));
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, LargerThanThePeerAcceptsAreRefusedAtOnce) {
  Pair pair(pair_options());
  const CallRecord& call = pair.complete({.request_bytes = (4 << 20) + 1});
  EXPECT_EQ(call.kind, EvKind::failed);
  EXPECT_EQ(call.reason, Reason::too_large);
  EXPECT_EQ(call.processed, Processed::no);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, CarryStatusAndDeadline) {
  Pair pair(pair_options());
  expect_ok(pair.complete({.status = 5}));
  expect_ok(pair.complete({.response_bytes = 3000, .status = 0, .timeout_us = 1'000'000}));
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, AllSlotsAtOnceInEveryOrderOfAnswers) {
  PairOptions wide = pair_options();
  wide.inflight_max = 24;
  Pair pair(wide);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < 24; ++i) {
    ids.push_back(
        pair.start({.request_bytes = i * 150, .response_bytes = 3600 - i * 150, .answer = Answer::later}));
  }
  EXPECT_EQ(pair.start({}), 0u);  // all call slots are in use
  pair.run();
  EXPECT_EQ(pair.server.unanswered(), 24u);
  for (std::size_t i = 0; i < 24; ++i) pair.server.answer((i * 7) % pair.server.unanswered());
  pair.run();
  for (const std::uint64_t id : ids) expect_ok(pair.call(id));
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, CanBeBothWaysBetweenTwoContexts) {
  Pair pair(pair_options());
  std::uint32_t back_client = 0, back_server = 0;
  connect(pair.server, back_client, pair.client, back_server, pair_options());
  const std::uint64_t there = pair.start({.request_bytes = 3000, .response_bytes = 3000});
  const std::uint64_t back = pair.server.start(back_client, {.request_bytes = 3000, .response_bytes = 3000});
  pair.run();
  expect_ok(pair.call(there));
  expect_ok(pair.call(back));
  pair.server.session(back_client).close("over");
  pair.client.session(back_server).close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(Calls, ManySmallOnesReuseSlotsAndCredits) {
  PairOptions wide = pair_options();
  wide.inflight_max = 16;
  Pair pair(wide);
  int calls = 0;
  while (calls < 3000) {
    while (pair.start({}) != 0) ++calls;
    pair.step();
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

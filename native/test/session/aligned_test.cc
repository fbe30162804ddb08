// Tests aligned messages (WIRE 2.4). Each gather entry begins at a multiple of 64 bytes at the receiver. This
// holds in every mode, in requests and responses, and whether the entry is sent in place or copied. Other
// tests use reply buffers that are the only memory allowed for a response.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Reason;
using Violations = std::vector<std::string>;

class AlignedMessages : public testing::TestWithParam<Exposure> {
 protected:
  PairOptions pair_options() {
    PairOptions options;
    options.context.exposure = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Sim, AlignedMessages,
                         testing::Values(Exposure::automatic, Exposure::staging, Exposure::shared),
                         [](const auto& info) { return std::string(to_string(info.param)); });

void expect_ok(const CallRecord& call) {
  EXPECT_EQ(call.kind, EvKind::settled);
  EXPECT_EQ(call.status, 0u);
  EXPECT_EQ(call.answer_bytes, call.spec.response_bytes);
}

// The sides of the pair check the bytes that arrive and where each gather entry begins.
TEST_P(AlignedMessages, OfAnyNumberOfGatherEntries) {
  Pair pair(pair_options());
  for (const std::size_t gather_entries :
       {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{kGatherEntriesMax},
        std::size_t{kGatherEntriesMax + 1}, std::size_t{100}}) {
    for (const bool in_arena : {false, true}) {
      for (const std::size_t bytes : {std::size_t{4097}, std::size_t{60'000}}) {
        SCOPED_TRACE(std::to_string(bytes) + " bytes in " + std::to_string(gather_entries) +
                     " gather entries");
        expect_ok(pair.complete({.request_bytes = bytes,
                                 .request_gather_entries = gather_entries,
                                 .request_in_arena = in_arena,
                                 .response_bytes = bytes + 1,
                                 .response_gather_entries = gather_entries,
                                 .response_in_arena = in_arena,
                                 .aligned = true}));
      }
    }
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(AlignedMessages, LargerThanOneTransfer) {
  Pair pair(pair_options());
  expect_ok(pair.complete({.request_bytes = 1'500'001,
                           .request_gather_entries = 3,
                           .response_bytes = 1'400'003,
                           .response_gather_entries = 4,
                           .aligned = true}));
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(AlignedMessages, MayBeAnEighthLongerThanMessages) {
  PairOptions options = pair_options();
  options.max_message_bytes = 8192;
  Pair pair(options);
  expect_ok(pair.complete({.request_bytes = 8192, .request_gather_entries = 20, .aligned = true}));
  expect_ok(pair.complete({.response_bytes = 8192, .response_gather_entries = 20, .aligned = true}));
  const CallRecord& call = pair.complete({.request_bytes = 8192 + 1024 + 4096 + 1, .aligned = true});
  EXPECT_EQ(call.kind, EvKind::failed);
  EXPECT_EQ(call.reason, Reason::too_large);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(AlignedMessages, ReplyBufferThatIsAllThereIs) {
  Pair pair(pair_options());
  const CallRecord& fits = pair.complete({.response_bytes = 5000,
                                          .response_gather_entries = 2,
                                          .given_reply_buffer = 8192,
                                          .aligned = true,
                                          .reply_buffer_only = true});
  expect_ok(fits);
  EXPECT_EQ(fits.answer_block, fits.given_block);
  EXPECT_EQ(fits.refused_bytes, 0u);
  const CallRecord& beyond = pair.complete(
      {.response_bytes = 9001, .given_reply_buffer = 8192, .aligned = true, .reply_buffer_only = true});
  EXPECT_EQ(beyond.kind, EvKind::settled);
  EXPECT_EQ(beyond.status, 8u);
  EXPECT_EQ(beyond.refused_bytes, 9001u);
  expect_ok(pair.complete({.response_bytes = 9001, .given_reply_buffer = 8192, .aligned = true}));
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

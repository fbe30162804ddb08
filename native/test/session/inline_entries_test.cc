// Tests short gather entries of a large request that are inline in its frame (WIRE 2.1). Such entries arrive
// at their offsets, need no window and no READ, and wait together with their request.
#include <gtest/gtest.h>

#include "seal/libcrypto.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using Violations = std::vector<std::string>;

PairOptions inlined(PairOptions options = {}) {
  options.inlined = true;
  return options;
}

/// Returns how many READs the server makes for a call.
std::uint64_t reads_of(Pair& pair, const CallSpec& spec) {
  const std::uint64_t before = pair.server.context->stats().bulk_reads;
  EXPECT_TRUE(pair.complete(spec).answered());
  return pair.server.context->stats().bulk_reads - before;
}

CallSpec three_gather_entries(std::size_t short_bytes, bool aligned = false) {
  return {.request_bytes = 5000,
          .request_gather_entries = 3,
          .short_gather_entry_bytes = short_bytes,
          .in_scratch = true,
          .aligned = aligned};
}

// The sides of the pair compare every byte that arrives.
TEST(InlineEntries, UpToTheirLength) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair(inlined());
  for (const bool aligned : {false, true}) {
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{63}, std::size_t{255}, std::size_t{kInlinedBytes}})
      EXPECT_EQ(reads_of(pair, three_gather_entries(bytes, aligned)), 1u) << bytes;
    EXPECT_EQ(reads_of(pair, three_gather_entries(kInlinedBytes + 1, aligned)), 3u);
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(InlineEntries, OnlyToAPeerThatTakesThem) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair{PairOptions{}};
  EXPECT_EQ(reads_of(pair, three_gather_entries(20)), 3u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(InlineEntries, AreNotReadAndNotCountedAsRead) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair(inlined());
  EXPECT_EQ(reads_of(pair, three_gather_entries(100)), 1u);
  EXPECT_EQ(pair.server.context->stats().bulk_read_bytes, 5000u - 2 * 100);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(InlineEntries, AsManyAsTheFrameHasRoomFor) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair(inlined());
  // The request has 15 short and 15 long entries. A frame of 1,024 bytes also contains the list of all 30
  // entries, and metadata.
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{200}}) {
    const std::uint64_t reads = reads_of(pair, {.request_bytes = 20'000,
                                                .request_gather_entries = kGatherEntriesMax,
                                                .short_gather_entry_bytes = bytes,
                                                .in_scratch = true,
                                                .aligned = true});
    const std::size_t room = 1024 - sizeof(Descriptor) - sizeof(wire::GatherListHead) -
                             kGatherEntriesMax * sizeof(wire::GatherEntry);
    EXPECT_EQ(reads, kGatherEntriesMax - std::min<std::size_t>(15, room / bytes)) << bytes;
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

// (The first and third of the four entries are in the scratch buffer, and the others in memory of the
// application.)
TEST(InlineEntries, NotOfTheApplicationHoweverShort) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair(inlined());
  for (const bool aligned : {false, true}) {
    EXPECT_EQ(reads_of(pair, {.request_bytes = 90,
                              .request_gather_entries = 4,
                              .in_scratch = true,
                              .given_reply_buffer = 4096,
                              .aligned = aligned}),
              2u);
    EXPECT_EQ(reads_of(pair, {.request_bytes = 90,
                              .request_gather_entries = 3,
                              .given_reply_buffer = 4096,
                              .aligned = aligned}),
              3u);
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(InlineEntries, NeverAllOfThem) {
  Pair pair(inlined());
  EXPECT_EQ(reads_of(pair, {.request_bytes = 30, .in_scratch = true, .given_reply_buffer = 4096}), 1u);
  EXPECT_EQ(pair.finish(), Violations{});
}

// The scratch buffer is overwritten as soon as the message has been submitted.
TEST(Scratch, IsCopiedFromInEveryMode) {
  for (const Exposure exposure : {Exposure::automatic, Exposure::staging, Exposure::shared}) {
    for (const bool takes_inlined : {false, true}) {
      SCOPED_TRACE(std::string(to_string(exposure)) + (takes_inlined ? ", inlined" : ""));
      PairOptions options;
      options.inlined = takes_inlined;
      options.context.exposure = exposure;
      Pair pair(options);
      for (const std::size_t gather_entries : {std::size_t{2}, std::size_t{3}, std::size_t{kGatherEntriesMax},
                                               std::size_t{kGatherEntriesMax + 1}}) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{90}, std::size_t{256}}) {
          for (const bool aligned : {false, true}) {
            const CallSpec spec{.request_bytes = 20'000,
                                .request_gather_entries = gather_entries,
                                .short_gather_entry_bytes = bytes,
                                .in_scratch = true,
                                .aligned = aligned};
            // The test starts more calls at once than one batch can send.
            std::vector<std::uint64_t> ids;
            for (int i = 0; i < 4; ++i) ids.push_back(pair.start(spec));
            pair.run();
            for (const std::uint64_t id : ids) EXPECT_TRUE(pair.call(id).answered());
          }
        }
      }
      EXPECT_EQ(pair.client.context->arena().counters().blocks_leased, 0u);
      EXPECT_EQ(pair.finish(), Violations{});
    }
  }
}

TEST(Scratch, NeedsABlockOfTheArena) {
  Pair pair(inlined(immediate()));
  const memory::BlockId hog = pair.client.context->arena().alloc(8 << 20);
  const CallSpec spec = three_gather_entries(20);
  const CallRecord& call = pair.complete(spec);
  EXPECT_EQ(call.kind, EvKind::failed);
  EXPECT_EQ(call.reason, boundary::Reason::no_memory);
  pair.client.context->arena().release(hog);
  EXPECT_TRUE(pair.complete(spec).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(InlineEntries, WaitWithTheirRequestForMemory) {
  for (const bool part : {false, true}) {
    SCOPED_TRACE(part);
    Pair pair(inlined(immediate()));
    const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
    CallSpec spec = three_gather_entries(77, true);
    spec.part = part;
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 4; ++i) ids.push_back(pair.start(spec));
    pair.run();
    for (const std::uint64_t id : ids) EXPECT_FALSE(pair.call(id).ended());
    pair.server.context->arena().release(hog);
    pair.run();
    for (const std::uint64_t id : ids) EXPECT_TRUE(pair.call(id).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(InlineEntries, WhereWhatIsReceivedIsCopied) {
  PairOptions options = inlined();
  options.sim.capabilities.peers_keep_access = true;
  Pair pair(options);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{50}, std::size_t{200}})
    EXPECT_TRUE(pair.complete(three_gather_entries(bytes, true)).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(InlineEntries, InNoOtherModeThanWindowsDoHarm) {
  for (const Exposure exposure : {Exposure::staging, Exposure::shared}) {
    SCOPED_TRACE(to_string(exposure));
    PairOptions options = inlined();
    options.context.exposure = exposure;
    Pair pair(options);
    for (const bool aligned : {false, true})
      EXPECT_TRUE(pair.complete(three_gather_entries(30, aligned)).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(InlineEntries, NotInASealedSession) {
  if (seal::ciphers().empty()) GTEST_SKIP() << "not run: " << seal::why_no_cipher();
  PairOptions options = inlined();
  options.sealed = true;
  Pair pair(options);
  EXPECT_EQ(reads_of(pair, three_gather_entries(30, true)), 1u) << "of the sealed copy";
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

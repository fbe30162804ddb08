// Short pieces of a large request that its frame carries (WIRE 2.1): they arrive in their places, cost no
// window and no READ, and wait with their request when that waits.
#include <gtest/gtest.h>

#include "seal/libcrypto.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using Violations = std::vector<std::string>;

PairOptions carried(PairOptions options = {}) {
  options.carried = true;
  return options;
}

/// READs of the server for a call.
std::uint64_t reads_of(Pair& pair, const CallSpec& spec) {
  const std::uint64_t before = pair.server.context->stats().bulk_reads;
  EXPECT_TRUE(pair.complete(spec).answered());
  return pair.server.context->stats().bulk_reads - before;
}

CallSpec three_pieces(std::size_t short_bytes, bool image = false) {
  return {.request_bytes = 5000,
          .request_pieces = 3,
          .short_piece_bytes = short_bytes,
          .in_text_room = true,
          .image = image};
}

// What arrives is compared, byte by byte, by the sides of the pair.
TEST(CarriedPieces, UpToTheirLength) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair(carried());
  for (const bool image : {false, true}) {
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{63}, std::size_t{255}, std::size_t{kCarriedBytes}})
      EXPECT_EQ(reads_of(pair, three_pieces(bytes, image)), 1u) << bytes;
    EXPECT_EQ(reads_of(pair, three_pieces(kCarriedBytes + 1, image)), 3u);
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(CarriedPieces, OnlyToAPeerThatTakesThem) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair{PairOptions{}};
  EXPECT_EQ(reads_of(pair, three_pieces(20)), 3u);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(CarriedPieces, AreNotReadAndNotCountedAsRead) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair(carried());
  EXPECT_EQ(reads_of(pair, three_pieces(100)), 1u);
  EXPECT_EQ(pair.server.context->stats().bulk_read_bytes, 5000u - 2 * 100);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(CarriedPieces, AsManyAsTheFrameHasRoomFor) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair(carried());
  // 15 short ones and 15 long ones; a frame of 1,024 bytes has a list of 30 and some metadata, too.
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{200}}) {
    const std::uint64_t reads = reads_of(pair, {.request_bytes = 20'000,
                                                .request_pieces = kPiecesMax,
                                                .short_piece_bytes = bytes,
                                                .in_text_room = true,
                                                .image = true});
    const std::size_t room =
        1024 - sizeof(Descriptor) - sizeof(wire::PiecesHead) - kPiecesMax * sizeof(wire::Piece);
    EXPECT_EQ(reads, kPiecesMax - std::min<std::size_t>(15, room / bytes)) << bytes;
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

// (One and three of four are in the text room, the others are the application's.)
TEST(CarriedPieces, NotOfTheApplicationHoweverShort) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair(carried());
  for (const bool image : {false, true}) {
    EXPECT_EQ(reads_of(pair, {.request_bytes = 90,
                              .request_pieces = 4,
                              .in_text_room = true,
                              .given_reply_buffer = 4096,
                              .image = image}),
              2u);
    EXPECT_EQ(reads_of(pair, {.request_bytes = 90, .request_pieces = 3, .given_reply_buffer = 4096, .image = image}),
              3u);
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(CarriedPieces, NeverAllOfThem) {
  Pair pair(carried());
  EXPECT_EQ(reads_of(pair, {.request_bytes = 30, .in_text_room = true, .given_reply_buffer = 4096}), 1u);
  EXPECT_EQ(pair.finish(), Violations{});
}

// The room is written over as soon as the message has been submitted.
TEST(TextRoom, IsCopiedFromInEveryMode) {
  for (const Exposure exposure : {Exposure::automatic, Exposure::staging, Exposure::shared}) {
    for (const bool takes_carried : {false, true}) {
      SCOPED_TRACE(std::string(to_string(exposure)) + (takes_carried ? ", carried" : ""));
      PairOptions options;
      options.carried = takes_carried;
      options.context.exposure = exposure;
      Pair pair(options);
      for (const std::size_t pieces :
           {std::size_t{2}, std::size_t{3}, std::size_t{kPiecesMax}, std::size_t{kPiecesMax + 1}}) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{90}, std::size_t{256}}) {
          for (const bool image : {false, true}) {
            const CallSpec spec{.request_bytes = 20'000,
                                .request_pieces = pieces,
                                .short_piece_bytes = bytes,
                                .in_text_room = true,
                                .image = image};
            // More at once than one batch sends.
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

TEST(TextRoom, NeedsABlockOfTheArena) {
  Pair pair(carried(immediate()));
  const memory::BlockId hog = pair.client.context->arena().alloc(8 << 20);
  const CallSpec spec = three_pieces(20);
  const CallRecord& call = pair.complete(spec);
  EXPECT_EQ(call.kind, EvKind::failed);
  EXPECT_EQ(call.reason, boundary::Reason::no_memory);
  pair.client.context->arena().release(hog);
  EXPECT_TRUE(pair.complete(spec).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(CarriedPieces, WaitWithTheirRequestForMemory) {
  for (const bool part : {false, true}) {
    SCOPED_TRACE(part);
    Pair pair(carried(immediate()));
    const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
    CallSpec spec = three_pieces(77, true);
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

TEST(CarriedPieces, WhereWhatIsReceivedIsCopied) {
  PairOptions options = carried();
  options.sim.capabilities.peers_keep_access = true;
  Pair pair(options);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{50}, std::size_t{200}})
    EXPECT_TRUE(pair.complete(three_pieces(bytes, true)).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(CarriedPieces, InNoOtherModeThanWindowsDoHarm) {
  for (const Exposure exposure : {Exposure::staging, Exposure::shared}) {
    SCOPED_TRACE(to_string(exposure));
    PairOptions options = carried();
    options.context.exposure = exposure;
    Pair pair(options);
    for (const bool image : {false, true}) EXPECT_TRUE(pair.complete(three_pieces(30, image)).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(CarriedPieces, NotInASealedSession) {
  if (seal::ciphers().empty()) GTEST_SKIP() << "this system has no libcrypto";
  PairOptions options = carried();
  options.sealed = true;
  Pair pair(options);
  EXPECT_EQ(reads_of(pair, three_pieces(30, true)), 1u) << "of the copy that is sealed";
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

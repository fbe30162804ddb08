// Tests segments from a peer that breaks their rules or never completes a message. The peer is a client or a
// server.
#include <gtest/gtest.h>

#include "session/hostile/hostile.h"

namespace rdma_rpc::session::test {
namespace {

FrameBytes segment(std::uint32_t call, std::size_t bytes) {
  return FrameBytes(header(FrameType::segment, call, 0)).pad(bytes);
}

const Trick kClientTricks[] = {
    {"HonestSegments", "",
     [](Scene& s) {
       s.peer.send(segment(0, 900));
       s.peer.send(segment(0, 1000));
       s.peer.request(0, 500);
       s.run();
       EXPECT_EQ(s.victim.reassembled_messages, 1);
       const auto ask =
           s.peer.receive(FrameType::reply_buffer_request);  // this client has not announced segments
       ASSERT_TRUE(ask.has_value());
       EXPECT_EQ(ask->frame.header.method, 2400u);
       s.peer.send(FrameBytes(header(FrameType::reply_buffer, 0, 0)));
     }},
    {"SegmentsThatEndLater", "",
     [](Scene& s) {
       for (int i = 0; i < 15; ++i) {
         s.peer.send(segment(0, 20));
         s.run();
       }
       EXPECT_EQ(s.victim.session(s.session).receives().kept(), 15u) << "the receives of its credits";
       s.peer.request(0, 20);
       s.run();
       EXPECT_EQ(s.victim.session(s.session).receives().kept(), 0u);
     }},
    {"SegmentsOfTwoMessages", "among the segments of another",
     [](Scene& s) {
       s.peer.send(segment(0, 100));
       s.peer.send(segment(1, 100));
     }},
    {"SegmentsOfAnotherCall", "without the end of their message",
     [](Scene& s) {
       s.peer.send(segment(0, 100));
       s.peer.request(1);
     }},
    {"SegmentsThatACancelEnds", "without the end of their message",
     [](Scene& s) {
       s.peer.request(0);
       s.peer.send(segment(0, 100));
       s.peer.send(FrameBytes(header(FrameType::cancel, 0, 1)));
     }},
    {"SegmentsAndCredits", "without the end of their message",
     [](Scene& s) {
       s.peer.send(segment(0, 100));
       s.peer.send(FrameBytes(header(FrameType::credit, 0, 0)));
     }},
    {"SegmentsOfAMessageInGatherEntries", "segments before a frame whose message is not in it",
     [](Scene& s) {
       s.peer.send(segment(0, 100));
       s.peer.send(FrameBytes(header(FrameType::request, 0, 7, wire::has_gather_list))
                       .add(wire::GatherListHead{3000, 1})
                       .add(wire::GatherEntry{s.peer.address(0), 3000, 1}));
     }},
    {"SegmentsOfASlotOutOfRange", "slot out of range",
     [](Scene& s) { s.peer.send(segment(kInflight, 100)); }},
};

const Trick kServerTricks[] = {
    {"AnswerInSegments", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.ran(s.id);
       s.peer.send(segment(request.frame.header.call, 700));
       s.run();
       s.peer.respond(request.frame.header.call);
       s.run();
       EXPECT_EQ(s.victim.reassembled_messages, 1);
     }},
    {"AnswerInSegmentsToACallGivenUp", "",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.send(segment(request.frame.header.call, 700));
       s.run();
       s.victim.cancel(s.id);
       s.peer.respond(request.frame.header.call);
       s.run();
       EXPECT_EQ(s.victim.reassembled_messages, 0);
     }},
    {"AnswerInSegmentsToACallWithMemory", "to a call that has exposed memory",
     [](Scene& s) {
       const auto request = s.request({.request_bytes = 2000});
       s.ran(s.id);
       s.peer.send(segment(request.frame.header.call, 700));
       s.peer.respond(request.frame.header.call);
     }},
    {"ErrorInSegments", "segments of an error",
     [](Scene& s) {
       const auto request = s.request({});
       s.peer.send(segment(request.frame.header.call, 700));
       s.peer.respond(request.frame.header.call, 13);
     }},
};

class SegmentsOfAClient : public testing::TestWithParam<Trick> {};
INSTANTIATE_TEST_SUITE_P(Tries, SegmentsOfAClient, testing::ValuesIn(kClientTricks),
                         [](const auto& info) { return std::string(info.param.name); });
TEST_P(SegmentsOfAClient, HurtOnlyItsOwnSession) { play(GetParam(), false); }

class SegmentsOfAServer : public testing::TestWithParam<Trick> {};
INSTANTIATE_TEST_SUITE_P(Tries, SegmentsOfAServer, testing::ValuesIn(kServerTricks),
                         [](const auto& info) { return std::string(info.param.name); });
TEST_P(SegmentsOfAServer, HurtOnlyItsOwnSession) { play(GetParam(), true); }

// More segments arrive than any number of credits allows.
TEST(Segments, AreLimited) {
  const std::vector<std::byte> bytes(kSegmentedBytesMax);
  session::Segments many, long_ones;
  for (std::uint32_t i = 0; i < kSegmentsMax; ++i)
    EXPECT_EQ(many.add(1, ReceiveSlot::receive(i), bytes.data(), 1), nullptr);
  EXPECT_STREQ(many.add(1, ReceiveSlot::receive(99), bytes.data(), 1), session::Segments::kTooLong);
  EXPECT_EQ(long_ones.add(1, ReceiveSlot::receive(0), bytes.data(), kSegmentedBytesMax - 1), nullptr);
  EXPECT_STREQ(long_ones.add(1, ReceiveSlot::receive(1), bytes.data(), 2), session::Segments::kTooLong);
}

}  // namespace
}  // namespace rdma_rpc::session::test

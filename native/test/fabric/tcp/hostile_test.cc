// Tests a peer that violates the protocol. Each impossible frame ends the connection with an error sentence,
// and no byte of memory changes. Other tests send seeded noise: frames that are nearly valid, and bytes that
// are no frames.
#include <functional>
#include <random>

#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

using tcp::Header;
using tcp::Op;

struct Lie {
  const char* what;
  std::function<void(RawPeer&, TcpEnd&)> tell;
  const char* sentence;
};

Header with(const Header& header, const std::function<void(Header&)>& change) {
  Header changed = header;
  change(changed);
  return changed;
}

std::vector<std::byte> bytes(std::size_t count) { return std::vector<std::byte>(count, std::byte{0x5a}); }

/// Returns a frame that is invalid by itself, and that is sent first.
Lie frame(const char* what, const Header& header, const char* sentence) {
  return {what, [header](RawPeer& peer, TcpEnd&) { peer.send(header); }, sentence};
}

/// Returns two frames, of which the second is invalid.
Lie second(const char* what, const Header& first, const Header& lie, const char* sentence) {
  return {what,
          [first, lie](RawPeer& peer, TcpEnd&) {
            peer.send(first, bytes(first.bytes));
            peer.send(lie);
          },
          sentence};
}

std::vector<Lie> lies() {
  const Header send{.op = Op::send, .bytes = 8, .total = 8};
  const Header part{.op = Op::send, .bytes = 8, .total = 24};
  const Header next{.op = Op::send, .bytes = 8, .addr = 8, .total = 16};
  const Header write{.op = Op::write, .bytes = 8, .key = 1, .addr = 1, .total = 8};
  const char* goes_on = "does not continue where";
  std::vector<Lie> all = {
      frame("kind 0", with(send, [](Header& h) { h.op = Op{0}; }), "unknown kind"),
      frame("kind 11", with(send, [](Header& h) { h.op = Op{11}; }), "unknown kind"),
      frame("kind 255", with(send, [](Header& h) { h.op = Op{255}; }), "unknown kind"),
      frame("reserved bytes", with(send, [](Header& h) { h.reserved = 1; }), "reserved"),
      frame("an unknown flag", with(send, [](Header& h) { h.flags = 0x80; }), "flags"),
      frame("an immediate and an invalidation in a SEND",
            with(send, [](Header& h) { h.flags = tcp::flag_immediate | tcp::flag_invalidate; }), "an immediate"),
      frame("an invalidation in a WRITE", with(write, [](Header& h) { h.flags = tcp::flag_invalidate; }), "flags"),
      frame("a key in a SEND", with(send, [](Header& h) { h.key = 1; }), "has a key"),
      frame("a word without a flag", with(send, [](Header& h) { h.extra = 1; }), "extra word"),
      frame("65537 bytes", with(send, [](Header& h) { h.bytes = h.total = 65537; }), "longer than 65536"),
      frame("4 GiB", with(send, [](Header& h) { h.bytes = h.total = 0xffffffff; }), "longer than 65536"),
      frame("a message of 1 GiB and a byte", with(send, [](Header& h) { h.total = (1u << 30) + 1; }), "1 GiB"),
      frame("more than is left", with(send, [](Header& h) { h.total = 7; }), "longer than what is left"),
      frame("an empty part", with(send, [](Header& h) { h.bytes = 0; }), "in the middle of a message is empty"),
      frame("an ack wanted in the middle", with(part, [](Header& h) { h.flags = tcp::flag_ack; }), "asks for an ack"),
      frame("a READ that carries bytes", {.op = Op::read, .bytes = 8, .total = 8}, "without payload"),
      frame("an ack that carries bytes", {.op = Op::ack, .bytes = 1}, "without payload"),
      frame("an ack with an address", {.op = Op::ack, .number = 1, .addr = 1}, "has an address"),
      frame("an ack with a length", {.op = Op::ack, .number = 1, .total = 1}, "has a length"),
      frame("an answer of no bytes", {.op = Op::data}, "with no bytes"),
      frame("an answer that is gone and has bytes",
            {.op = Op::data, .flags = tcp::flag_memory_gone, .bytes = 8, .total = 8}, "carries bytes"),
      frame("an answer without a READ, from memory that is gone",
            {.op = Op::data, .flags = tcp::flag_memory_gone, .total = 8}, "answer without a READ"),
      frame("a message that is gone", {.op = Op::send, .flags = tcp::flag_memory_gone}, "has flags"),
      frame("an atomic with one operand", {.op = Op::atomic, .bytes = 8, .addr = 8, .total = 8}, "two operands"),
      frame("an atomic in parts", {.op = Op::atomic, .bytes = 8, .addr = 8, .total = 16}, "two operands"),
      frame("an atomic that is not aligned", {.op = Op::atomic, .bytes = 16, .addr = 4, .total = 16}, "aligned"),
      frame("a third atomic", {.op = Op::atomic, .bytes = 16, .total = 16, .extra = 2}, "unknown kind"),
      frame("features without a question", {.op = Op::features, .extra = 3}, "not asked for"),
      frame("features with a number", {.op = Op::features, .number = 1, .extra = 3}, "has a number"),
      frame("a good-bye with a number", {.op = Op::gone, .number = 1}, "GONE or BYE frame has a number"),
      frame("another number", with(send, [](Header& h) { h.number = 1; }), "not have the next number"),
      frame("a message from its middle", next, "does not begin at offset 0"),
      frame("an ack for nothing", {.op = Op::ack, .number = 0}, "never sent"),
      frame("an ack for what was not sent", {.op = Op::ack, .number = 1}, "never sent"),
      frame("a refusal of nothing", {.op = Op::refusal, .extra = 1}, "not open"),
      frame("a refusal without a reason", {.op = Op::refusal}, "unknown reason"),
      frame("a refusal for another reason", {.op = Op::refusal, .extra = 4}, "unknown reason"),
      frame("an answer without a READ", {.op = Op::data, .bytes = 8, .total = 8}, "answer without a READ"),
      second("a gap", part, with(next, [](Header& h) { h.addr = 9; }), goes_on),
      second("the same bytes again", part, part, goes_on),
      second("another length", part, with(next, [](Header& h) { h.total = 17; }), goes_on),
      second("another kind", part, write, goes_on),
      second("an atomic in the middle", part, {.op = Op::atomic, .bytes = 16, .addr = 8, .total = 16},
             "in the middle"),
      second("a READ in the middle", part, {.op = Op::read, .total = 8}, "in the middle"),
      second("the number of the one before", send, send, "not have the next number"),
      {"a word that appears in the middle",
       [part, next](RawPeer& peer, TcpEnd&) {
         peer.send(part, bytes(8));
         peer.send(with(next, [](Header& h) {
           h.flags = tcp::flag_invalidate;
           h.extra = 5;
         }));
       },
       goes_on},
      {"17 READs at once",
       [](RawPeer& peer, TcpEnd& end) {
         // The answers are not read. The first ones fill the connection, and 16 more wait.
         for (std::uint32_t i = 0; end.qp->state() == QpState::rts && i < 4096; ++i) {
           peer.send({.op = Op::read,
                      .number = i,
                      .key = end.region->rkey(),
                      .addr = end.region->addr(),
                      .total = static_cast<std::uint32_t>(end.host->size())});
         }
       },
       "more than 16 READs"},
  };
  return all;
}

TEST(TcpHostile, EachInvalidFrameEndsTheConnectionWithAReason) {
  for (const Lie& lie : lies()) {
    SCOPED_TRACE(lie.what);
    TcpEnd end;
    RawPeer peer(end);
    ASSERT_NO_FATAL_FAILURE(peer.connect());
    std::memset(end.host->data(), 0xee, end.host->size());
    end.receive(1);
    end.receive(2);
    lie.tell(peer, end);
    ASSERT_TRUE(end.until([&] { return end.qp->state() == QpState::err; })) << "it was believed";
    EXPECT_NE(end.qp->error().find("the peer broke the protocol"), std::string::npos) << end.qp->error();
    EXPECT_NE(end.qp->error().find(lie.sentence), std::string::npos) << end.qp->error();
    EXPECT_EQ(end.outcome(2), WcStatus::wr_flush_err);
    EXPECT_EQ(end.host->data()[1024], std::byte{0xee});
    Header last;
    while (peer.take_frame(&last)) {
    }
    EXPECT_EQ(last.op, Op::bye) << "the peer is not told";
  }
}

/// An answer must match the READ that it answers.
TEST(TcpHostile, AnAnswerThatDoesNotFitEndsTheConnection) {
  const Header good{.op = Op::data, .bytes = 64, .number = 0, .addr = 0, .total = 64};
  const struct {
    const char* what;
    Header header;
  } cases[] = {
      {"longer", with(good, [](Header& h) { h.bytes = h.total = 65; })},
      {"shorter", with(good, [](Header& h) { h.bytes = h.total = 63; })},
      {"of another READ", with(good, [](Header& h) { h.number = 1; })},
      {"further on", with(good, [](Header& h) { h.addr = 1; })},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    TcpEnd end;
    RawPeer peer(end);
    ASSERT_NO_FATAL_FAILURE(peer.connect());
    std::memset(end.host->data(), 0xee, end.host->size());
    const Sge sge = end.sge(0, 64);
    end.post(request(Opcode::rdma_read, 7, {&sge, 1}, 0x1000, 1));
    peer.send(c.header, bytes(c.header.bytes));
    EXPECT_EQ(end.outcome(7), WcStatus::wr_flush_err);
    EXPECT_NE(end.qp->error().find("does not fit the READ"), std::string::npos) << end.qp->error();
    EXPECT_TRUE(end.untouched(0xee));
  }
}

/// A refusal waits behind answers that the peer never reads, and then the peer closes. The refusal can no
/// longer be sent, and the queue pair must not wait for it.
TEST(TcpHostile, APeerThatClosesBeforeItsRefusalIsSentEndsTheQueuePair) {
  TcpEnd end(false, 4 << 20);
  RawPeer peer(end);
  ASSERT_NO_FATAL_FAILURE(peer.connect(4 << 10));
  std::vector<std::byte> frames;
  const auto add = [&frames](const Header& header) {
    const auto* from = reinterpret_cast<const std::byte*>(&header);
    frames.insert(frames.end(), from, from + sizeof header);
  };
  for (std::uint32_t i = 0; i < 8; ++i) {
    add({.op = Op::read,
         .number = i,
         .key = end.region->rkey(),
         .addr = end.region->addr(),
         .total = static_cast<std::uint32_t>(end.host->size())});
  }
  add({.op = Op::write, .bytes = 8, .number = 8, .key = 1, .addr = 1, .total = 8});
  peer.send_unpolled(frames);
  // The peer reads nothing, so this loop ends when the socket is full and the last frame has been read.
  for (int i = 0; i < 1000; ++i) end.poll();
  ASSERT_EQ(end.qp->state(), QpState::rts) << "the refusal has not waited";
  peer.close();
  EXPECT_TRUE(end.until([&] { return end.qp->state() == QpState::err; }));
}

TEST(TcpHostile, RandomBytesDoNoHarm) {
  TcpEnd end;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    end.completions.clear();
    end.qp =
        end.device->create_qp(*end.cq, {.send_wr_max = 64, .recv_wr_max = 64, .active = false}, &end.error);
    RawPeer peer(end);
    ASSERT_NO_FATAL_FAILURE(peer.connect());
    std::memset(end.host->data(), 0xee, end.host->size());
    const Sge sge = end.sge(0, 256);
    if (seed % 2 == 0) end.post(request(Opcode::send, 3, {&sge, 1}));
    if (seed % 3 == 0) end.post(request(Opcode::rdma_write, 4, {&sge, 1}, 0x1000, 1));
    for (std::uint32_t i = 0; i < 40 && end.qp->state() == QpState::rts; ++i) {
      Header header{.op = static_cast<Op>(random() % 10),
                    .flags = static_cast<std::uint8_t>(random() % 9 == 0 ? random() : 0),
                    .number = random() % 3 == 0 ? static_cast<std::uint32_t>(random()) : i,
                    .key = static_cast<std::uint32_t>(random() % 2 == 0 ? random() : 0x100),
                    .addr = random() % 2 == 0 ? end.region->addr() - 8 : 0};
      const auto below_64 = [&random] { return static_cast<std::uint32_t>(random() % 64); };
      header.bytes = below_64();
      header.total = header.bytes + (random() % 2 == 0 ? below_64() : 0);
      peer.send(header, bytes(random() % 5 == 0 ? random() % 64 : header.bytes));
    }
    peer.close();
    // Every posted request completes, and nothing was written, because the peer had no receive and no valid
    // key.
    ASSERT_TRUE(
        end.until([&] { return end.qp->state() == QpState::err || end.qp->state() == QpState::rts; }));
    end.qp->to_error();
    for (const auto& [wr_id, every] : {std::pair{3u, 2u}, {4u, 3u}}) {
      if (seed % every != 0) continue;
      EXPECT_NE(end.outcome(wr_id), WcStatus::general_err);
    }
    EXPECT_TRUE(end.untouched(0xee));
  }
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

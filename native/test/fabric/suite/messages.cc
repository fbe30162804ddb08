// Tests SEND and RECV: content and order at every size, gather lists, inline data, a peer without a posted
// receive, and messages that are too long.
#include <algorithm>

#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

constexpr std::size_t kSlot = 8192;

TEST_P(FabricSuite, SendsArriveCompleteAtEverySize) {
  connect();
  const std::size_t limit = caps().max_inline;
  Memory& out = memory(client_, kSlot, kLocal);
  Memory& in = memory(server_, kSlot + 1, kLocal);
  std::uint64_t id = 1;
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, limit, limit + 1, kSlot - 1, kSlot}) {
    SCOPED_TRACE(bytes);
    const auto seed = static_cast<std::uint32_t>(id);
    out.fill(0, bytes, seed);
    std::memset(in.data(), 0xee, kSlot + 1);
    post_recv(server_, id, in.sge(0, kSlot));
    const Sge sge = out.sge(0, bytes);
    post(client_, request(Opcode::send, id, {&sge, 1}));
    const Wc received = expect(server_, id);
    EXPECT_EQ(received.opcode, Opcode::recv);
    EXPECT_EQ(received.bytes, bytes);
    EXPECT_EQ(received.qp_num, server_.qp->qp_num());
    EXPECT_FALSE(received.has_imm);
    EXPECT_EQ(received.invalidated_rkey, 0u);
    EXPECT_TRUE(in.holds(0, bytes, seed));
    EXPECT_TRUE(in.all(bytes, kSlot + 1 - bytes, 0xee)) << "bytes behind the message were touched";
    EXPECT_EQ(expect(client_, id).qp_num, client_.qp->qp_num());
    ++id;
  }
  expect_quiet();
}

/// Soft-iWARP has a separate path for up to 32 bytes, and another one for requests that it sends while the
/// caller is in the kernel. A long request ends the second path, so that the requests behind it use the first
/// path.
TEST_P(FabricSuite, AFewBytesThatCrossAPageArriveAsTheyAre) {
  connect();
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(1 << 20, caps().max_write_bytes));
  Memory& source = memory(client_, most, kLocal);
  Memory& target = memory(server_, most, kAllRights);
  Memory& in = memory(server_, 64, kLocal);
  const std::uint64_t page = 2 * kPageBytes - source.addr() % kPageBytes;
  std::uint32_t seed = 0;
  for (const std::uint64_t bytes : {2u, 3u, 20u, 31u, 32u, 33u}) {
    for (std::uint64_t beyond = 1; beyond < bytes; ++beyond) {
      SCOPED_TRACE(std::to_string(beyond) + " of " + std::to_string(bytes));
      const std::uint64_t start = page + beyond - bytes;
      source.fill(start, bytes, ++seed);
      post_recv(server_, seed, in.sge(0, bytes));
      const Sge rest = source.sge(64, most - 64), few = source.sge(start, bytes);
      SendWr batch[] = {request(Opcode::rdma_write, 1, {&rest, 1}, target.addr(64), target.rkey()),
                        request(Opcode::rdma_write, 2, {&few, 1}, target.addr(), target.rkey()),
                        request(Opcode::send, 3, {&few, 1})};
      batch[0].signaled = batch[1].signaled = false;
      ASSERT_EQ(client_.qp->post_send(batch), std::size(batch));
      expect(server_, seed);
      EXPECT_TRUE(in.holds(0, bytes, seed)) << "SEND";
      EXPECT_TRUE(target.holds(0, bytes, seed)) << "WRITE";
      expect(client_, 3);
    }
  }
}

TEST_P(FabricSuite, SendsWorkInBothDirectionsAtOnce) {
  connect();
  for (Side* side : {&client_, &server_}) {
    Memory& in = memory(*side, 64, kLocal);
    post_recv(*side, 100, in.sge(0, 64));
  }
  for (Side* side : {&client_, &server_}) {
    Memory& out = memory(*side, 64, kLocal);
    const Sge sge = out.sge(0, 64);
    SendWr wr = request(Opcode::send, 1, {&sge, 1});
    wr.signaled = false;
    post(*side, wr);
  }
  EXPECT_EQ(expect(client_, 100).bytes, 64u);
  EXPECT_EQ(expect(server_, 100).bytes, 64u);
  expect_quiet();
}

TEST_P(FabricSuite, SendsFillReceivesInTheOrderPosted) {
  connect();
  constexpr std::uint32_t kCount = 32;
  Memory& out = memory(client_, kCount * 64, kLocal);
  Memory& in = memory(server_, kCount * 64, kLocal);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    out.fill(i * 64, i + 1, i);
    post_recv(server_, 1000 + i, in.sge(i * 64, 64));
  }
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const Sge sge = out.sge(i * 64, i + 1);
    post(client_, request(Opcode::send, i, {&sge, 1}));
  }
  for (std::uint32_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(expect(server_, 1000 + i).bytes, i + 1);
    EXPECT_TRUE(in.holds(i * 64, i + 1, i));
  }
  for (std::uint32_t i = 0; i < kCount; ++i) expect(client_, i);
  expect_quiet();
}

TEST_P(FabricSuite, AGatherListArrivesAsOneMessage) {
  connect();
  Memory& first = memory(client_, 4096, kLocal);
  Memory& second = memory(client_, 4096, kLocal);
  Memory& in = memory(server_, 8192, kLocal);
  first.fill(0, 4096, 1);
  second.fill(0, 4096, 2);
  std::vector<Sge> sges;
  std::vector<std::byte> wanted;
  for (std::uint32_t i = 0; i < caps().max_sge; ++i) {
    const Memory& from = i % 2 == 0 ? first : second;
    const std::uint64_t offset = 17 * i, length = i == 2 ? 0 : 13 + i;
    sges.push_back(from.sge(offset, length));
    wanted.insert(wanted.end(), from.data() + offset, from.data() + offset + length);
  }
  post_recv(server_, 7, in.sge(0, 8192));
  post(client_, request(Opcode::send, 8, sges));
  EXPECT_EQ(expect(server_, 7).bytes, wanted.size());
  EXPECT_EQ(std::memcmp(in.data(), wanted.data(), wanted.size()), 0);
  expect(client_, 8);
}

TEST_P(FabricSuite, AnInlineBufferMayBeReusedAtOnce) {
  connect();
  const std::size_t bytes = caps().max_inline;
  if (bytes == 0) GTEST_SKIP() << "not run: " << caps().name << " has no inline sends";
  Memory& in = memory(server_, 4 * bytes, kLocal);
  // Inline data needs no registration, so a plain vector suffices.
  std::vector<std::byte> scratch(bytes);
  for (std::uint32_t i = 0; i < 4; ++i) post_recv(server_, i, in.sge(i * bytes, bytes));
  for (std::uint32_t i = 0; i < 4; ++i) {
    std::memset(scratch.data(), static_cast<int>(i + 1), bytes);
    const Sge sge{reinterpret_cast<std::uint64_t>(scratch.data()), static_cast<std::uint32_t>(bytes), 0};
    SendWr wr = request(Opcode::send, i, {&sge, 1});
    wr.inline_data = true;
    post(client_, wr);
    std::memset(scratch.data(), 0xff, bytes);
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(expect(server_, i).bytes, bytes);
    EXPECT_TRUE(in.all(i * bytes, bytes, static_cast<std::uint8_t>(i + 1)));
  }
}

TEST_P(FabricSuite, AnInlineGatherListIsCopiedWhole) {
  connect();
  if (caps().max_inline < 16 || caps().max_sge < 3) GTEST_SKIP() << "not run: no inline gather lists";
  Memory& in = memory(server_, 64, kLocal);
  std::byte parts[3][5];
  Sge sges[3];
  for (std::size_t i = 0; i < 3; ++i) {
    std::memset(parts[i], static_cast<int>('a' + i), 5);
    sges[i] = {reinterpret_cast<std::uint64_t>(parts[i]), 5, 0};
  }
  post_recv(server_, 1, in.sge(0, 64));
  SendWr wr = request(Opcode::send, 2, sges);
  wr.inline_data = true;
  post(client_, wr);
  std::memset(parts, 0, sizeof parts);
  EXPECT_EQ(expect(server_, 1).bytes, 15u);
  EXPECT_EQ(std::memcmp(in.data(), "aaaaabbbbbccccc", 15), 0);
}

TEST_P(FabricSuite, ASendWithoutAReceiveEndsTheSender) {
  RDMA_RPC_NEEDS(names_refusals);
  connect();
  Memory& out = memory(client_, 64, kLocal);
  const Sge sge = out.sge(0, 8);
  SendWr wr = request(Opcode::send, 1, {&sge, 1});
  wr.signaled = false;  // errors are always reported
  post(client_, wr);
  expect(client_, 1, WcStatus::rnr_retry_exc_err);
  EXPECT_EQ(client_.qp->state(), QpState::err);
  post(client_, request(Opcode::send, 2, {&sge, 1}));
  expect(client_, 2, WcStatus::wr_flush_err);
}

TEST_P(FabricSuite, NothingIsCarriedOutAfterAFailure) {
  RDMA_RPC_NEEDS(names_refusals);
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& target = memory(server_, 64, kAllRights);
  target.paint(0xee);
  const Sge sge = out.sge(0, 64);
  const SendWr batch[] = {request(Opcode::send, 1, {&sge, 1}),
                          request(Opcode::rdma_write, 2, {&sge, 1}, target.addr(), target.rkey()),
                          request(Opcode::send, 3, {&sge, 1})};
  EXPECT_EQ(client_.qp->post_send(batch), 3u);
  expect(client_, 1, WcStatus::rnr_retry_exc_err);
  expect(client_, 2, WcStatus::wr_flush_err);
  expect(client_, 3, WcStatus::wr_flush_err);
  expect_quiet();
  EXPECT_TRUE(target.untouched(0xee));
  EXPECT_EQ(server_.qp->state(), QpState::rts);
}

TEST_P(FabricSuite, EachSendUsesUpOneReceive) {
  RDMA_RPC_NEEDS(names_refusals);
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kLocal);
  const Sge sge = out.sge(0, 8);
  post_recv(server_, 1, in.sge(0, 32));
  post(client_, request(Opcode::send, 1, {&sge, 1}));
  post(client_, request(Opcode::send, 2, {&sge, 1}));
  expect(server_, 1);
  expect(client_, 1);
  expect(client_, 2, WcStatus::rnr_retry_exc_err);
}

TEST_P(FabricSuite, ATooLongMessageEndsBothSides) {
  RDMA_RPC_NEEDS(names_refusals);
  connect();
  Memory& out = memory(client_, 4096, kLocal);
  Memory& in = memory(server_, 4096, kLocal);
  std::memset(in.data(), 0xee, 4096);
  post_recv(server_, 1, in.sge(0, 1024));
  post_recv(server_, 2, in.sge(2048, 1024));
  const Sge sge = out.sge(0, 1025);
  post(client_, request(Opcode::send, 3, {&sge, 1}));
  // A device may notice only while it fills the receive that the message is too long. The device then reports
  // the status of an invalid receive.
  const WcStatus status = expect_error(server_, 1).status;
  EXPECT_TRUE(status == WcStatus::loc_len_err || status == WcStatus::loc_prot_err) << to_string(status);
  expect(server_, 2, WcStatus::wr_flush_err);
  expect(client_, 3, WcStatus::rem_inv_req_err);
  EXPECT_TRUE(in.all(1024, 3072, 0xee)) << "the message ran past its receive";
  EXPECT_EQ(client_.qp->state(), QpState::err);
  EXPECT_EQ(server_.qp->state(), QpState::err);
}

TEST_P(FabricSuite, SendsMadeBeforeThePeerHasConnectedWait) {
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kLocal);
  out.fill(0, 64, 5);
  post_recv(server_, 1, in.sge(0, 64));
  if (!connect_client_alone()) GTEST_SKIP() << "not run: both sides come up together here";
  const Sge sge = out.sge(0, 64);
  post(client_, request(Opcode::send, 2, {&sge, 1}));
  ASSERT_EQ(server_.qp->connect(client_.qp->local_address()), "");
  EXPECT_EQ(expect(server_, 1).bytes, 64u);
  EXPECT_TRUE(in.holds(0, 64, 5));
  expect(client_, 2);
}

}  // namespace rdma_rpc::fabric::test

// Tests READ and WRITE through plain regions: bytes of every size, and the refusal of every wrong key, right
// and range.
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

constexpr std::size_t kSizes[] = {1, 7, 64, 4095, 4096, 65539, std::size_t{1} << 20, std::size_t{8} << 20};
constexpr std::uint64_t kBytes = 4096;  // size of the region used for refusals

// Rights of memory that is the destination of a READ, on every kind of device.
constexpr std::uint32_t kSink = access_local_write | access_remote_write;

TEST_P(FabricSuite, WritesPlaceEveryByteInBothDirections) {
  connect();
  std::uint32_t seed = 1;
  for (Side* from : {&client_, &server_}) {
    for (const std::size_t bytes : kSizes) {
      SCOPED_TRACE(bytes);
      Memory& source = memory(*from, bytes, kLocal);
      Memory& target = memory(peer_of(*from), bytes + 2, access_local_write | access_remote_write);
      source.fill(0, bytes, ++seed);
      target.paint(0xee);
      const Sge sge = source.sge(0, bytes);
      post(*from, request(Opcode::rdma_write, seed, {&sge, 1}, target.addr(1), target.rkey()));
      expect(*from, seed);
      EXPECT_TRUE(arrived([&] { return target.holds(1, bytes, seed); }));
      EXPECT_TRUE(target.all(0, 1, 0xee) && target.all(bytes + 1, 1, 0xee))
          << "bytes beside the target changed";
    }
  }
  expect_quiet();
}

TEST_P(FabricSuite, ReadsFetchEveryByteInBothDirections) {
  connect();
  std::uint32_t seed = 1;
  for (Side* to : {&client_, &server_}) {
    for (const std::size_t bytes : kSizes) {
      SCOPED_TRACE(bytes);
      Memory& source = memory(peer_of(*to), bytes, access_local_write | access_remote_read);
      Memory& sink = memory(*to, bytes + 2, kSink);
      source.fill(0, bytes, ++seed);
      sink.paint(0xee);
      const Sge sge = sink.sge(1, bytes);
      post(*to, request(Opcode::rdma_read, seed, {&sge, 1}, source.addr(), source.rkey()));
      EXPECT_EQ(expect(*to, seed).bytes, bytes);
      EXPECT_TRUE(sink.holds(1, bytes, seed));
      EXPECT_TRUE(sink.all(0, 1, 0xee) && sink.all(bytes + 1, 1, 0xee)) << "bytes beside the sink changed";
    }
  }
  expect_quiet();
}

TEST_P(FabricSuite, AWriteGathersAndAReadScatters) {
  connect();
  Memory& local = memory(client_, 4096, kSink);
  Memory& remote = memory(server_, 4096, kAllRights);
  local.fill(0, 4096, 1);
  std::vector<Sge> sges;
  std::vector<std::byte> wanted;
  for (std::uint32_t i = 0; i < caps().max_sge; ++i) {
    sges.push_back(local.sge(200 * i, 3 + i));
    wanted.insert(wanted.end(), local.data() + 200 * i, local.data() + 200 * i + 3 + i);
  }
  post(client_, request(Opcode::rdma_write, 1, sges, remote.addr(5), remote.rkey()));
  expect(client_, 1);
  EXPECT_TRUE(arrived([&] { return std::memcmp(remote.data() + 5, wanted.data(), wanted.size()) == 0; }));

  remote.fill(0, 4096, 2);
  local.paint(0);
  sges.clear();
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < caps().max_sge_read; ++i) {
    sges.push_back(local.sge(200 * i, 3 + i));
    total += 3 + i;
  }
  post(client_, request(Opcode::rdma_read, 2, sges, remote.addr(7), remote.rkey()));
  EXPECT_EQ(expect(client_, 2).bytes, total);
  const std::byte* from = remote.data() + 7;
  for (const Sge& sge : sges) {
    EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(sge.addr), from, sge.length), 0);
    from += sge.length;
  }
}

TEST_P(FabricSuite, ASendComesAfterTheWritesBeforeIt) {
  connect();
  Memory& out = memory(client_, 65536, kLocal);
  Memory& in = memory(server_, 65536, kAllRights);
  for (std::uint32_t round = 0; round < 50; ++round) {
    out.fill(0, 65536, round);
    post_recv(server_, round, {});
    const Sge sge = out.sge(0, 65536);
    SendWr batch[2] = {request(Opcode::rdma_write, 1, {&sge, 1}, in.addr(), in.rkey()),
                       request(Opcode::send, 2, {})};
    batch[0].signaled = false;
    ASSERT_EQ(client_.qp->post_send(batch), 2u);
    expect(server_, round);
    ASSERT_TRUE(in.holds(0, 65536, round)) << "the SEND overtook the WRITE in round " << round;
    expect(client_, 2);
  }
}

TEST_P(FabricSuite, AFencedSendComesAfterTheReadsBeforeIt) {
  connect();
  Memory& sink = memory(client_, 4096, kSink);
  Memory& source = memory(server_, 4096, kAllRights);
  for (std::uint32_t round = 0; round < 50; ++round) {
    source.fill(0, 4096, round);
    post_recv(server_, round, {});
    const Sge sge = sink.sge(0, 4096);
    SendWr batch[2] = {request(Opcode::rdma_read, 1, {&sge, 1}, source.addr(), source.rkey()),
                       request(Opcode::send, 2, {})};
    batch[1].fence = true;
    ASSERT_EQ(client_.qp->post_send(batch), 2u);
    expect(server_, round);
    source.fill(0, 4096, round + 1000);  // the server may reuse its memory now
    expect(client_, 1);
    ASSERT_TRUE(sink.holds(0, 4096, round)) << "the READ was late in round " << round;
    expect(client_, 2);
  }
}

TEST_P(FabricSuite, MoreReadsThanTheDeviceExecutesAtOnceAreQueued) {
  connect();
  Memory& sink = memory(client_, 64 * 64, kSink);
  Memory& source = memory(server_, 64 * 64, kAllRights);
  source.fill(0, 64 * 64, 3);
  for (std::uint64_t i = 0; i < 64; ++i) {
    const Sge sge = sink.sge(i * 64, 64);
    post(client_, request(Opcode::rdma_read, i, {&sge, 1}, source.addr(i * 64), source.rkey()));
  }
  for (std::uint64_t i = 0; i < 64; ++i) expect(client_, i);
  EXPECT_TRUE(sink.holds(0, 64 * 64, 3));
}

TEST_P(FabricSuite, NoBytesMoveNothingWhateverTheKey) {
  Memory& local = memory(client_, 64, kSink);
  Memory& remote = memory(server_, 64, kAllRights);
  for (const Opcode opcode : {Opcode::rdma_read, Opcode::rdma_write}) {
    for (const std::uint32_t key : {remote.rkey(), remote.rkey() ^ 0x100u, 0u}) {
      recreate({.send_wr_max = 8, .recv_wr_max = 8});
      connect();
      local.paint(0x11);
      remote.paint(0xee);
      post(client_, request(opcode, 1, {}, remote.addr(), key));
      const WcStatus status = next(client_).status;
      // Some devices check the key of such a request and others do not. With a valid key the request
      // succeeds.
      EXPECT_TRUE(status == WcStatus::success ||
                  (key != remote.rkey() && status == WcStatus::rem_access_err));
      EXPECT_TRUE(local.untouched(0x11) && remote.untouched(0xee));
    }
  }
}

TEST_P(FabricSuite, RemoteAccessIsRefusedUnlessKeyRightAndRangeAreRight) {
  Memory& local = memory(client_, 2 * kBytes, kSink);
  Memory& all = memory(server_, kBytes, kAllRights);
  Memory& read_only = memory(server_, kBytes, access_local_write | access_remote_read);
  Memory& write_only = memory(server_, kBytes, access_local_write | access_remote_write);
  Memory& private_ = memory(server_, kBytes, kBindable);
  std::string error;
  auto gone = server_.device->reg_mr(all.data(), kBytes, kAllRights, &error);
  ASSERT_NE(gone, nullptr) << error;
  const std::uint32_t stale = gone->rkey();
  gone.reset();
  EXPECT_EQ(private_.rkey(), 0u);

  struct Case {
    const char* what;
    Opcode opcode;
    std::uint32_t key;
    std::uint64_t addr;
    std::uint64_t bytes;
  };
  std::vector<Case> cases = {
      {"read of write-only memory", Opcode::rdma_read, write_only.rkey(), write_only.addr(), 8},
      {"write to read-only memory", Opcode::rdma_write, read_only.rkey(), read_only.addr(), 8},
  };
  for (const Opcode opcode : {Opcode::rdma_read, Opcode::rdma_write}) {
    const std::uint64_t start = all.addr(), end = all.addr(kBytes);
    const std::uint32_t key = all.rkey();
    cases.insert(
        cases.end(),
        {{"key 0", opcode, 0, start, 8},
         {"all ones as key", opcode, 0xffffffff, start, 8},
         {"key with another variant", opcode, key ^ 1u, start, 8},
         {"key with another index", opcode, key ^ 0x00800000u, start, 8},
         {"key of a region that is gone", opcode, stale, start, 8},
         {"local key of a region without rights", opcode, private_.region->lkey(), private_.addr(), 8},
         {"key of another region", opcode, write_only.rkey(), start, 8},
         {"one byte before", opcode, key, start - 1, 1},
         {"begins one byte before", opcode, key, start - 1, 8},
         {"one byte behind", opcode, key, end, 1},
         {"ends one byte behind", opcode, key, end - 7, 8},
         {"one byte longer", opcode, key, start, kBytes + 1},
         {"address 0", opcode, key, 0, 8},
         {"last byte of the address space", opcode, key, ~std::uint64_t{0}, 1},
         {"wraps around", opcode, key, ~std::uint64_t{0} - 3, 8},
         {"wraps into the region", opcode, key, 0 - std::uint64_t{kBytes}, 2 * kBytes}});
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.opcode == Opcode::rdma_read ? "READ: " : "WRITE: ") + c.what);
    const bool right_alone = c.key == write_only.rkey() || c.key == private_.region->lkey();
    if (!caps().checks_read_rights && c.opcode == Opcode::rdma_read && right_alone) continue;
    recreate({.send_wr_max = 8, .recv_wr_max = 8});
    connect();
    local.paint(0x11);
    for (Memory* target : {&all, &read_only, &write_only, &private_}) target->paint(0xee);
    for (Side* side : {&client_, &server_}) post_recv(*side, 9, {});
    const Sge sge = local.sge(0, c.bytes);
    SendWr wr = request(c.opcode, 1, {&sge, 1}, c.addr, c.key);
    wr.signaled = false;
    post(client_, wr);
    if (caps().names_refusals) expect(client_, 1, WcStatus::rem_access_err);
    expect_both_dead();
    EXPECT_TRUE(local.untouched(0x11));
    for (Memory* target : {&all, &read_only, &write_only, &private_}) EXPECT_TRUE(target->untouched(0xee));
  }
}

TEST_P(FabricSuite, TheFirstAndLastByteOfARegionCanBeReached) {
  connect();
  Memory& local = memory(client_, 2, kSink);
  Memory& remote = memory(server_, kBytes, kAllRights);
  std::uint64_t id = 0;
  for (const std::uint64_t offset : {std::uint64_t{0}, kBytes - 1}) {
    const Sge sge = local.sge(0, 1);
    post(client_, request(Opcode::rdma_write, ++id, {&sge, 1}, remote.addr(offset), remote.rkey()));
    expect(client_, id);
    post(client_, request(Opcode::rdma_read, ++id, {&sge, 1}, remote.addr(offset), remote.rkey()));
    expect(client_, id);
  }
}

TEST_P(FabricSuite, LocalEntriesMustLieInTheirRegion) {
  Memory& local = memory(client_, kBytes, kSink);
  Memory& remote = memory(server_, 2 * kBytes, kAllRights);
  const std::uint32_t key = local.region->lkey();
  const struct {
    const char* what;
    Sge sge;
  } cases[] = {
      {"key 0", {local.addr(), 8, 0}},
      {"wrong key", {local.addr(), 8, key ^ 1u}},
      {"begins before", {local.addr() - 1, 8, key}},
      {"ends behind", {local.addr(kBytes) - 7, 8, key}},
      {"too long", {local.addr(), kBytes + 1, key}},
      {"wraps around", {~std::uint64_t{0} - 3, 8, key}},
  };
  for (const auto& c : cases) {
    for (const Opcode opcode : {Opcode::send, Opcode::rdma_write, Opcode::rdma_read}) {
      SCOPED_TRACE(std::string(c.what) + ", opcode " + std::to_string(static_cast<int>(opcode)));
      recreate({.send_wr_max = 8, .recv_wr_max = 8});
      connect();
      local.paint(0x11);
      remote.paint(0xee);
      post_recv(server_, 5, remote.sge(0, 2 * kBytes));
      post(client_, request(opcode, 1, {&c.sge, 1}, remote.addr(), remote.rkey()));
      const Wc refused = expect_error(client_, 1);
      EXPECT_TRUE(refused_with(refused, WcStatus::loc_prot_err)) << to_string(refused.status);
      EXPECT_EQ(client_.qp->state(), QpState::err);
      // A device may notice this only at the wrong byte, after it has sent the packets before that byte.
      if (c.sge.length > kBytes) continue;
      expect_quiet();  // the peer is not notified of the error
      EXPECT_TRUE(local.untouched(0x11) && remote.untouched(0xee));
    }
  }
}

TEST_P(FabricSuite, AReadNeedsASinkThatMayBeWritten) {
  connect();
  Memory& local = memory(client_, 64, 0);
  Memory& remote = memory(server_, 64, kAllRights);
  local.paint(0x11);
  const Sge sge = local.sge(0, 8);
  post(client_, request(Opcode::rdma_read, 1, {&sge, 1}, remote.addr(), remote.rkey()));
  expect(client_, 1, WcStatus::loc_prot_err);
  EXPECT_TRUE(local.untouched(0x11));
}

TEST_P(FabricSuite, AnIwarpReadSinkNeedsRemoteWrite) {
  RDMA_RPC_NEEDS(read_sink_needs_remote_write);
  RDMA_RPC_NEEDS(names_refusals);  // soft-iWARP accepts such a request; hardware may do so, too
  connect();
  Memory& local = memory(client_, 64, access_local_write);
  Memory& remote = memory(server_, 64, kAllRights);
  const Sge sge = local.sge(0, 8);
  post(client_, request(Opcode::rdma_read, 1, {&sge, 1}, remote.addr(), remote.rkey()));
  expect(client_, 1, WcStatus::loc_prot_err);
}

TEST_P(FabricSuite, AReceiveMustLieInItsRegion) {
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kLocal);
  Memory& constant = memory(server_, 64, 0);
  const std::uint32_t key = in.region->lkey();
  for (const Sge& bad : {Sge{in.addr(), 64, 0}, Sge{in.addr(), 64, key ^ 1u}, Sge{in.addr() + 1, 64, key},
                         Sge{in.addr() - 1, 64, key}, constant.sge(0, 64)}) {
    recreate({.send_wr_max = 8, .recv_wr_max = 8});
    connect();
    in.paint(0xee);
    constant.paint(0xee);
    post_recv(server_, 1, bad);
    const Sge sge = out.sge(0, 64);
    post(client_, request(Opcode::send, 2, {&sge, 1}));
    expect(server_, 1, WcStatus::loc_prot_err);
    if (caps().names_refusals) {
      expect_error(client_, 2);
    } else {
      next(client_);
    }
    expect_both_dead();
    EXPECT_TRUE(in.untouched(0xee) && constant.untouched(0xee));
  }
}

TEST_P(FabricSuite, AWriteWithImmediateUsesUpAReceive) {
  RDMA_RPC_NEEDS(immediate);
  connect();
  Memory& out = memory(client_, 64, kLocal);
  Memory& in = memory(server_, 64, kAllRights);
  out.fill(0, 64, 4);
  post_recv(server_, 1, {});
  const Sge sge = out.sge(0, 64);
  SendWr wr = request(Opcode::rdma_write_with_imm, 2, {&sge, 1}, in.addr(), in.rkey());
  wr.imm = 0xdecafbad;
  post(client_, wr);
  const Wc wc = expect(server_, 1);
  EXPECT_EQ(wc.opcode, Opcode::recv_rdma_with_imm);
  EXPECT_TRUE(wc.has_imm);
  EXPECT_EQ(wc.imm, 0xdecafbadu);
  EXPECT_EQ(wc.bytes, 64u);
  EXPECT_TRUE(in.holds(0, 64, 4));
  expect(client_, 2);
  post(client_, wr);
  expect(client_, 2, WcStatus::rnr_retry_exc_err);
}

TEST_P(FabricSuite, MalformedRequestsFailWithoutReachingThePeer) {
  Memory& local = memory(client_, kBytes, kSink);
  Memory& remote = memory(server_, kBytes, kAllRights);
  const std::vector<Sge> many(caps().max_sge + 1, local.sge(0, 1));
  const std::vector<Sge> many_to_read(caps().max_sge_read + 1, local.sge(0, 1));
  const Sge one = local.sge(0, 8), over = local.sge(0, caps().max_inline + 1);
  std::vector<std::pair<const char*, SendWr>> cases;
  const auto add = [&](const char* what, Opcode opcode, std::span<const Sge> sges) -> SendWr& {
    return cases.emplace_back(what, request(opcode, 1, sges, remote.addr(), remote.rkey())).second;
  };
  add("send with too many entries", Opcode::send, many);
  add("write with too many entries", Opcode::rdma_write, many);
  add("read with too many entries", Opcode::rdma_read, many_to_read);
  add("inline beyond max_inline", Opcode::send, {&over, 1}).inline_data = true;
  add("inline read", Opcode::rdma_read, {&one, 1}).inline_data = true;
  add("a receive in the send queue", Opcode::recv, {&one, 1});
  add("no such opcode", static_cast<Opcode>(99), {&one, 1});
  if (!caps().immediate) add("immediate without the capability", Opcode::rdma_write_with_imm, {&one, 1});
  if (!caps().windows) {
    add("bind without the capability", Opcode::bind_mw, {});
    add("local invalidate without the capability", Opcode::local_inv, {});
    add("send with invalidate without the capability", Opcode::send_with_inv, {});
  }
  for (const auto& [what, wr] : cases) {
    SCOPED_TRACE(what);
    recreate({.send_wr_max = 8, .recv_wr_max = 8});
    connect();
    local.paint(0x11);
    remote.paint(0xee);
    post_recv(server_, 5, remote.sge(0, kBytes));
    client_.qp->post_send({&wr, 1});
    expect_error(client_, 1);
    EXPECT_EQ(client_.qp->state(), QpState::err);
    expect_quiet();
    EXPECT_TRUE(local.untouched(0x11) && remote.untouched(0xee));
  }
}

}  // namespace rdma_rpc::fabric::test

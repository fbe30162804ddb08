// Tests type-2 memory windows. A bound key gives access only to its range. An invalidated key gives no
// access.
#include <algorithm>
#include <functional>

#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

constexpr std::uint64_t kRegion = 16384, kStart = 4096, kLength = 4096;  // the window lies inside the region

TEST_P(FabricSuite, AWindowGivesAccessInBothDirections) {
  RDMA_RPC_NEEDS(windows);
  connect();
  std::uint32_t seed = 1;
  for (Side* owner : {&client_, &server_}) {
    Side& user = peer_of(*owner);
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{4096}, std::size_t{65539}, std::size_t{8} << 20}) {
      SCOPED_TRACE(bytes);
      Memory& exposed = memory(*owner, bytes, kBindable);
      Memory& local = memory(user, bytes, kLocal | access_remote_write);
      MemoryWindow& mw = window(*owner);
      const Sge sge = local.sge(0, bytes);

      exposed.fill(0, bytes, ++seed);
      bind(*owner, mw, exposed, 0, bytes, access_remote_read);
      post(user, request(Opcode::rdma_read, 1, {&sge, 1}, exposed.addr(), mw.rkey()));
      expect(user, 1);
      EXPECT_TRUE(local.holds(0, bytes, seed));

      SendWr invalidate = request(Opcode::local_inv, 2, {});
      invalidate.invalidate_rkey = mw.rkey();
      post(*owner, invalidate);
      expect(*owner, 2);

      local.fill(0, bytes, ++seed);
      bind(*owner, mw, exposed, 0, bytes, access_remote_write);
      post(user, request(Opcode::rdma_write, 3, {&sge, 1}, exposed.addr(), mw.rkey()));
      expect(user, 3);
      EXPECT_TRUE(exposed.holds(0, bytes, seed));
    }
  }
  expect_quiet();
}

TEST_P(FabricSuite, EachBindGivesAnotherKey) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& exposed = memory(client_, kRegion, kBindable);
  MemoryWindow& mw = window(client_);
  std::vector<std::uint32_t> keys{mw.rkey()};
  // A bind changes only one byte of the key, so the 256th bind brings the first key back.
  for (std::uint64_t i = 0; i < 254; ++i) {
    bind(client_, mw, exposed, kStart, kLength, access_remote_read);
    keys.push_back(mw.rkey());
    SendWr invalidate = request(Opcode::local_inv, i, {});
    invalidate.invalidate_rkey = mw.rkey();
    post(client_, invalidate);
    expect(client_, i);
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end()) << "a key was used again";
  EXPECT_NE(keys.front(), 0u);
}

TEST_P(FabricSuite, AKeyMayFollowItsBindInOneBatch) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& exposed = memory(client_, kRegion, kBindable);
  Memory& in = memory(server_, 64, kLocal);
  Memory& sink = memory(server_, kLength, kLocal | access_remote_write);
  MemoryWindow& mw = window(client_);
  exposed.fill(0, kRegion, 3);
  post_recv(server_, 1, in.sge(0, 64));
  SendWr wr = bind_wr(mw, *exposed.region, exposed.addr(), kLength, access_remote_read);
  wr.signaled = false;
  post(client_, wr);
  const std::uint32_t key = mw.rkey();
  const Sge inline_key{reinterpret_cast<std::uint64_t>(&key), sizeof key, 0};
  SendWr message = request(Opcode::send, 2, {&inline_key, 1});
  message.inline_data = true;
  post(client_, message);
  expect(server_, 1);
  std::uint32_t received = 0;
  std::memcpy(&received, in.data(), sizeof received);
  const Sge sge = sink.sge(0, kLength);
  post(server_, request(Opcode::rdma_read, 4, {&sge, 1}, exposed.addr(), received));
  expect(server_, 4);
  EXPECT_TRUE(sink.holds(0, kLength, 3));
  expect(client_, 2);
}

TEST_P(FabricSuite, AWindowGivesNoMoreThanWasBound) {
  RDMA_RPC_NEEDS(windows);
  Memory& exposed = memory(client_, kRegion, kBindable);
  Memory& local = memory(server_, 2 * kRegion, kLocal | access_remote_write);
  const std::uint64_t start = exposed.addr(kStart), end = exposed.addr(kStart + kLength);
  const struct {
    const char* what;
    std::uint32_t access;
    Opcode opcode;
    std::uint64_t addr, bytes;
    std::uint32_t key_change;
  } cases[] = {
      {"write through a window for reading", access_remote_read, Opcode::rdma_write, start, 8, 0},
      {"read through a window for writing", access_remote_write, Opcode::rdma_read, start, 8, 0},
      {"read one byte before", access_remote_read, Opcode::rdma_read, start - 1, 1, 0},
      {"read begins one byte before", access_remote_read, Opcode::rdma_read, start - 1, 8, 0},
      {"read one byte behind", access_remote_read, Opcode::rdma_read, end, 1, 0},
      {"read ends one byte behind", access_remote_read, Opcode::rdma_read, start, kLength + 1, 0},
      {"write one byte before", access_remote_write, Opcode::rdma_write, start - 1, 1, 0},
      {"write begins one byte before", access_remote_write, Opcode::rdma_write, start - 1, 8, 0},
      {"write one byte behind", access_remote_write, Opcode::rdma_write, end, 1, 0},
      {"write ends one byte behind", access_remote_write, Opcode::rdma_write, start, kLength + 1, 0},
      {"wraps around", access_remote_write, Opcode::rdma_write, ~std::uint64_t{0} - 3, 8, 0},
      {"wraps into the window", access_remote_write, Opcode::rdma_write, 0 - kLength, 2 * kRegion, 0},
      {"the key before", access_remote_write, Opcode::rdma_write, start, 8, 1},
      {"a key far off", access_remote_write, Opcode::rdma_write, start, 8, 0x00800000},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const bool in_region = c.addr >= exposed.addr() && c.addr + c.bytes <= exposed.addr(kRegion);
    const bool in_window = c.addr >= start && c.addr + c.bytes <= end;
    if (!caps().exact_windows && in_region && !in_window) continue;
    recreate({.send_wr_max = 8, .recv_wr_max = 8});
    connect();
    MemoryWindow& mw = window(client_);
    bind(client_, mw, exposed, kStart, kLength, c.access);
    exposed.paint(0xee);
    local.paint(0x11);
    const Sge sge = local.sge(0, c.bytes);
    post(server_, request(c.opcode, 1, {&sge, 1}, c.addr, mw.rkey() ^ c.key_change));
    expect(server_, 1, WcStatus::rem_access_err);
    expect_both_dead();
    EXPECT_TRUE(exposed.untouched(0xee) && local.untouched(0x11));
  }
}

TEST_P(FabricSuite, AKeyThatHasEndedOpensNothing) {
  RDMA_RPC_NEEDS(windows);
  Memory& exposed = memory(client_, kRegion, kBindable);
  Memory& local = memory(server_, 64, kLocal | access_remote_write);
  const auto invalidate = [&](Opcode opcode, std::uint32_t key) {
    SendWr wr = request(opcode, 7, {});
    wr.invalidate_rkey = key;
    return wr;
  };
  const std::vector<std::pair<const char*, std::function<std::uint32_t(MemoryWindow&)>>> endings = {
      {"never bound", [&](MemoryWindow& mw) { return mw.rkey(); }},
      {"after LOCAL_INV",
       [&](MemoryWindow& mw) {
         bind(client_, mw, exposed, 0, kRegion, access_remote_read | access_remote_write);
         post(client_, invalidate(Opcode::local_inv, mw.rkey()));
         expect(client_, 7);
         return mw.rkey();
       }},
      {"after SEND_WITH_INV",
       [&](MemoryWindow& mw) {
         bind(client_, mw, exposed, 0, kRegion, access_remote_read | access_remote_write);
         post_recv(client_, 8, {});
         post(server_, invalidate(Opcode::send_with_inv, mw.rkey()));
         EXPECT_EQ(expect(client_, 8).invalidated_rkey, mw.rkey());
         expect(server_, 7);
         return mw.rkey();
       }},
      {"after another bind",
       [&](MemoryWindow& mw) {
         bind(client_, mw, exposed, 0, kRegion, access_remote_read | access_remote_write);
         const std::uint32_t old = mw.rkey();
         post(client_, invalidate(Opcode::local_inv, old));
         expect(client_, 7);
         bind(client_, mw, exposed, 0, kRegion, access_remote_read | access_remote_write);
         return old;
       }},
      {"through another queue pair", [&](MemoryWindow& mw) {
         // The window is bound on another queue pair, and its key is used on the pair of the fixture.
         const Pair other = another_pair();
         post(*other.client, bind_wr(mw, *exposed.region, exposed.addr(), kRegion,
                                     access_remote_read | access_remote_write));
         expect(client_, 0xb1);
         return mw.rkey();
       }}};
  for (const auto& [what, end] : endings) {
    for (const Opcode opcode : {Opcode::rdma_read, Opcode::rdma_write}) {
      SCOPED_TRACE(std::string(opcode == Opcode::rdma_read ? "READ " : "WRITE ") + what);
      recreate({.send_wr_max = 8, .recv_wr_max = 8});
      connect();
      const std::uint32_t key = end(window(client_));
      exposed.paint(0xee);
      local.paint(0x11);
      const Sge sge = local.sge(0, 8);
      post(server_, request(opcode, 1, {&sge, 1}, exposed.addr(), key));
      expect(server_, 1, WcStatus::rem_access_err);
      expect_both_dead();
      EXPECT_TRUE(exposed.untouched(0xee) && local.untouched(0x11));
    }
  }
}

TEST_P(FabricSuite, AFreedWindowOpensNothing) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& exposed = memory(client_, kRegion, kBindable);
  Memory& local = memory(server_, 64, kLocal);
  auto mw = client_.device->alloc_mw();
  bind(client_, *mw, exposed, 0, kRegion, access_remote_write);
  const std::uint32_t key = mw->rkey();
  mw.reset();
  exposed.paint(0xee);
  const Sge sge = local.sge(0, 8);
  post(server_, request(Opcode::rdma_write, 1, {&sge, 1}, exposed.addr(), key));
  expect(server_, 1, WcStatus::rem_access_err);
  EXPECT_TRUE(exposed.untouched(0xee));
}

TEST_P(FabricSuite, AfterTheFlushOfItsQueuePairAWindowIsClosed) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& exposed = memory(client_, kRegion, kBindable);
  Memory& local = memory(server_, kRegion, kLocal);
  MemoryWindow& mw = window(client_);
  bind(client_, mw, exposed, 0, kRegion, access_remote_write);
  post_recv(client_, 1, {});
  const Sge sge = local.sge(0, kRegion);
  local.fill(0, kRegion, 9);
  for (std::uint64_t i = 0; i < 4; ++i) {
    post(server_, request(Opcode::rdma_write, 10 + i, {&sge, 1}, exposed.addr(), mw.rkey()));
  }
  client_.qp->to_error();
  expect(client_, 1, WcStatus::wr_flush_err);
  // Bytes may have been written until now. From here on no byte is written.
  exposed.paint(0xee);
  settle();
  EXPECT_TRUE(exposed.untouched(0xee));
  server_.completions.clear();
}

TEST_P(FabricSuite, BindsThatMayNotBeAreRefused) {
  RDMA_RPC_NEEDS(windows);
  Memory& good = memory(client_, kRegion, kBindable);
  Memory& unbindable = memory(client_, kRegion, kLocal);
  Memory& constant = memory(client_, kRegion, access_mw_bind);
  const std::uint64_t start = good.addr();
  const struct {
    const char* what;
    Memory& memory;
    std::uint64_t addr, length;
    std::uint32_t access;
  } cases[] = {
      {"a region without access_mw_bind", unbindable, unbindable.addr(), 64, access_remote_read},
      {"remote write where local write is not allowed", constant, constant.addr(), 64, access_remote_write},
      {"begins one byte before", good, start - 1, 64, access_remote_read},
      {"ends one byte behind", good, start + 1, kRegion, access_remote_read},
      {"one byte longer", good, start, kRegion + 1, access_remote_read},
      {"wraps around", good, start, ~std::uint64_t{0}, access_remote_read},
      {"wraps around from the end", good, ~std::uint64_t{0} - 3, 8, access_remote_read},
      {"memory of another region", good, unbindable.addr(), 64, access_remote_read},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    recreate({.send_wr_max = 8, .recv_wr_max = 8});
    connect();
    post(client_, bind_wr(window(client_), *c.memory.region, c.addr, c.length, c.access));
    expect(client_, 0xb1, WcStatus::mw_bind_err);
    EXPECT_EQ(client_.qp->state(), QpState::err);
    expect_quiet();
  }
}

TEST_P(FabricSuite, ABoundWindowMustBeInvalidatedBeforeTheNextBind) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& exposed = memory(client_, kRegion, kBindable);
  MemoryWindow& mw = window(client_);
  bind(client_, mw, exposed, 0, 64, access_remote_read);
  post(client_, bind_wr(mw, *exposed.region, exposed.addr(), 64, access_remote_read));
  expect(client_, 0xb1, WcStatus::mw_bind_err);
}

TEST_P(FabricSuite, ABindWithoutItsObjectsIsRefused) {
  RDMA_RPC_NEEDS(windows);
  connect();
  post(client_, request(Opcode::bind_mw, 1, {}));
  expect_error(client_, 1);
  EXPECT_EQ(client_.qp->state(), QpState::err);
}

TEST_P(FabricSuite, OnlyABoundKeyCanBeInvalidated) {
  RDMA_RPC_NEEDS(windows);
  Memory& exposed = memory(client_, kRegion, kBindable);
  Memory& plain = memory(client_, kRegion, kAllRights);
  for (const Opcode opcode : {Opcode::local_inv, Opcode::send_with_inv}) {
    for (const int which : {0, 1, 2, 3}) {
      SCOPED_TRACE(which);
      // This case is skipped, because the kernel of the machine would crash.
      if (opcode == Opcode::send_with_inv && which == 2 && !caps().exact_windows) continue;
      recreate({.send_wr_max = 8, .recv_wr_max = 8});
      connect();
      MemoryWindow& mw = window(client_);
      std::uint32_t key = 0;
      if (which == 1) key = plain.rkey();
      if (which == 2) key = mw.rkey();  // a key that was never bound
      if (which == 3) {
        bind(client_, mw, exposed, 0, 64, access_remote_read);
        key = mw.rkey() ^ 0x80;
      }
      post_recv(client_, 5, {});
      SendWr wr = request(opcode, 1, {});
      wr.invalidate_rkey = key;
      Side& from = opcode == Opcode::local_inv ? client_ : server_;
      post(from, wr);
      if (opcode == Opcode::local_inv) {
        expect_error(client_, 1);
        expect(client_, 5, WcStatus::wr_flush_err);
      } else {
        const WcStatus status = next(server_).status;
        EXPECT_TRUE(status == WcStatus::rem_inv_req_err || !caps().exact_windows) << to_string(status);
        expect_error(client_, 5);
        if (caps().exact_windows) expect_both_dead();
      }
      EXPECT_EQ(client_.qp->state(), QpState::err);
    }
  }
}

TEST_P(FabricSuite, AWindowCannotBeInvalidatedThroughAnotherQueuePair) {
  RDMA_RPC_NEEDS(windows);
  if (!caps().exact_windows)
    GTEST_SKIP() << "not run: " << caps().name << " does not check a peer's SEND_WITH_INV";
  connect();
  const Pair other = another_pair();
  Memory& exposed = memory(client_, kRegion, kBindable);
  Memory& sink = memory(server_, 64, kLocal | access_remote_write);
  MemoryWindow& mw = window(client_);
  bind(client_, mw, exposed, 0, kRegion, access_remote_read);
  const RecvWr receive{5, {}};
  ASSERT_EQ(other.client->post_recv({&receive, 1}), 1u);
  SendWr wr = request(Opcode::send_with_inv, 1, {});
  wr.invalidate_rkey = mw.rkey();
  post(*other.server, wr);
  expect(server_, 1, WcStatus::rem_inv_req_err);
  expect_error(client_, 5);
  // The window still exists for its own queue pair.
  const Sge sge = sink.sge(0, 8);
  post(server_, request(Opcode::rdma_read, 2, {&sge, 1}, exposed.addr(), mw.rkey()));
  expect(server_, 2);
}

TEST_P(FabricSuite, AnInvalidationCompletesAfterUnsignaledRequests) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& exposed = memory(client_, kRegion, kBindable);
  MemoryWindow& mw = window(client_);
  post_recv(server_, 5, {});
  SendWr batch[] = {bind_wr(mw, *exposed.region, exposed.addr(), 64, access_remote_read),
                    request(Opcode::send, 1, {}), request(Opcode::local_inv, 2, {})};
  batch[0].signaled = batch[1].signaled = false;
  post(client_, batch[0]);
  batch[2].invalidate_rkey = mw.rkey();
  post(client_, batch[1]);
  expect(server_, 5);
  post(client_, batch[2]);
  expect(client_, 2);
}

TEST_P(FabricSuite, InvalidatingTwiceIsAnError) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& exposed = memory(client_, kRegion, kBindable);
  MemoryWindow& mw = window(client_);
  bind(client_, mw, exposed, 0, 64, access_remote_read);
  SendWr wr = request(Opcode::local_inv, 1, {});
  wr.invalidate_rkey = mw.rkey();
  post(client_, wr);
  expect(client_, 1);
  post(client_, wr);
  expect_error(client_, 1);
  EXPECT_EQ(client_.qp->state(), QpState::err);
}

}  // namespace rdma_rpc::fabric::test

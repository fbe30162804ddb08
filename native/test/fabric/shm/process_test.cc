// Tests properties of shm that need two processes: a peer that is killed or stopped at any moment, and access
// to each other's memory through the kernel.
#include <dirent.h>
#include <poll.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fabric/rights.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::size_t kChunk = 64 << 10;
constexpr std::size_t kChunks = ShmEnd::kMemoryBytes / kChunk;

/// The number of resources of this code in a process: descriptors, and mappings with our name. Both numbers
/// must have their old values when everything is closed.
struct Holdings {
  std::size_t descriptors = 0, mappings = 0;
  bool operator==(const Holdings&) const = default;
};

Holdings holdings() {
  // Descriptors of a control connection are closed on another thread.
  while (being_closed() > 0) std::this_thread::yield();
  Holdings held;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++held.descriptors;
  ::closedir(directory);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("rdma-rpc") != std::string::npos) ++held.mappings;
  }
  return held;
}

std::vector<std::string> named_objects() {
  std::vector<std::string> names;
  if (DIR* directory = ::opendir("/dev/shm"); directory != nullptr) {
    while (const dirent* entry = ::readdir(directory)) {
      if (std::strstr(entry->d_name, "rdma") != nullptr) names.emplace_back(entry->d_name);
    }
    ::closedir(directory);
  }
  return names;
}

/// The child process of most tests. The child connects, performs one operation on the window that the parent
/// granted, and raises `signal` before the third segment of that operation. It reports the status of the
/// operation.
struct Attack {
  Opcode opcode;
  int signal;
};

int run_attack(int socket, const Attack& attack) {
  ShmOptions options;
  options.copy_chunk_bytes = kChunk;
  int chunks = 0;
  options.before_chunk = [&](std::uint64_t) {
    // A SEND has a single segment.
    if (++chunks == (attack.opcode == Opcode::send ? 1 : 3)) ::raise(attack.signal);
  };
  ShmEnd end(options);
  ShmHello peer;
  if (!meet(end, socket, hello_of(end), &peer).empty()) return 1;
  std::memset(end.memory->data(), 0xaa, ShmEnd::kMemoryBytes);
  const auto go = hear<ShmHello>(socket);  // the parent sends it with the window's key, after the bind
  if (!go) return 2;
  const Sge sge = end.sge(0, attack.opcode == Opcode::send ? ShmEnd::kSlotBytes : ShmEnd::kMemoryBytes);
  if (!end.post(attack.opcode, 1, {&sge, 1}, go->remote_addr, go->rkey)) return 3;
  WcStatus status = WcStatus::success;
  for (Wc wc = end.next();; wc = end.next()) {
    if (wc.wr_id != 1) continue;
    status = wc.status;
    break;
  }
  if (!tell(socket, status)) return 4;
  std::byte secret{0x5e};
  const bool leaked = attack.opcode == Opcode::rdma_read &&
                      std::find(end.memory->data(), end.memory->data() + ShmEnd::kMemoryBytes, secret) !=
                          end.memory->data() + ShmEnd::kMemoryBytes;
  return leaked ? 5 : 0;
}

/// The near end of an attack. This end grants everything that the child may use.
struct Victim {
  explicit Victim(const Attack& attack, const ShmOptions& options = {})
      : child([attack](int socket) { return run_attack(socket, attack); }), end(options) {
    ShmHello theirs;
    reason = meet(end, child.socket(), hello_of(end), &theirs);
    std::memset(end.memory->data(), 0x11, ShmEnd::kMemoryBytes);
  }
  bool grant(const MemoryRegion& of, std::uint64_t addr) {
    if (!end.bind(of, addr, ShmEnd::kMemoryBytes, access_remote_read | access_remote_write)) return false;
    ShmHello go{};
    go.remote_addr = addr;
    go.rkey = end.window->rkey();
    return tell(child.socket(), go);
  }
  bool grant() { return grant(*end.region, end.region->addr()); }

  ChildProcess child;
  ShmEnd end;
  std::string reason;
};

ShmOptions short_grace() { return {.revoke_grace_us = 1000}; }

bool all(const std::byte* data, std::size_t bytes, std::uint8_t value) {
  return std::all_of(data, data + bytes, [value](std::byte b) { return b == std::byte{value}; });
}

// ---- kill -9 ----

class ShmKill : public ::testing::TestWithParam<Opcode> {};

TEST_P(ShmKill, AtAChunkOfACopyLeavesNothingAndHangsNothing) {
  const Holdings before = holdings();
  {
    Victim victim({GetParam(), SIGKILL});
    ASSERT_EQ(victim.reason, "");
    ASSERT_TRUE(victim.grant());
    EXPECT_EQ(victim.child.wait(), -SIGKILL);
    victim.end.qp->to_error();
    EXPECT_EQ(victim.end.drain_receives(), ShmEnd::kReceives);
    EXPECT_EQ(victim.end.qp->state(), QpState::err);
  }
  EXPECT_EQ(holdings(), before);
  EXPECT_TRUE(named_objects().empty());
}

TEST_P(ShmKill, LetsARevocationEnd) {
  Victim victim({GetParam(), SIGKILL}, short_grace());
  ASSERT_EQ(victim.reason, "");
  ASSERT_TRUE(victim.grant());
  EXPECT_EQ(victim.child.wait(), -SIGKILL);
  ASSERT_TRUE(victim.end.post(Opcode::local_inv, 7, {}, 0, victim.end.window->rkey()));
  const Wc wc = victim.end.next();
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.status, WcStatus::success);
}

std::string opcode_name(const ::testing::TestParamInfo<Opcode>& info) {
  if (info.param == Opcode::send) return "send";
  return info.param == Opcode::rdma_read ? "read" : "write";
}

INSTANTIATE_TEST_SUITE_P(Shm, ShmKill, ::testing::Values(Opcode::rdma_read, Opcode::rdma_write, Opcode::send),
                         opcode_name);

TEST(ShmProcess, KilledWhileIdleOrInTheMiddleOfTheRing) {
  const Holdings before = holdings();
  for (const bool sending : {false, true}) {
    SCOPED_TRACE(sending);
    ChildProcess child([sending](int socket) {
      ShmEnd end;
      ShmHello peer;
      if (!meet(end, socket, hello_of(end), &peer).empty()) return 1;
      const Sge sge = end.sge(0, 200);
      if (sending) {
        for (std::uint32_t i = 0; i < ShmEnd::kReceives / 2; ++i) end.post(Opcode::send, i, {&sge, 1});
      }
      tell(socket, true);
      while (true) ::pause();
    });
    ShmEnd end;
    ShmHello theirs;
    ASSERT_EQ(meet(end, child.socket(), hello_of(end), &theirs), "");
    ASSERT_TRUE(hear<bool>(child.socket()));
    child.signal(SIGKILL);
    EXPECT_EQ(child.wait(), -SIGKILL);
    // Messages that were sent before the end still arrive.
    for (std::uint32_t i = 0; sending && i < ShmEnd::kReceives / 2; ++i) {
      EXPECT_EQ(end.next().status, WcStatus::success);
    }
    const Sge sge = end.sge(0, ShmEnd::kSlotBytes);
    EXPECT_TRUE(end.post(Opcode::send, 1, {&sge, 1}));  // must not raise SIGPIPE or hang
    EXPECT_EQ(end.next().wr_id, 1u);
    end.qp->to_error();
    for (std::uint32_t i = sending ? ShmEnd::kReceives / 2 : 0; i < ShmEnd::kReceives; ++i) {
      EXPECT_EQ(end.next().status, WcStatus::wr_flush_err);
    }
  }
  EXPECT_EQ(holdings(), before);
}

TEST(ShmProcess, ADeadProcessIsRefused) {
  ChildProcess child([](int socket) {
    ShmEnd end;
    tell(socket, hello_of(end));
    hear<bool>(socket);
    return 0;
  });
  const auto hello = hear<ShmHello>(child.socket());
  ASSERT_TRUE(hello);
  tell(child.socket(), true);
  EXPECT_EQ(child.wait(), 0);
  ShmEnd end;
  EXPECT_NE(end.qp->connect(hello->blob()).find("has ended"), std::string::npos);
  EXPECT_EQ(end.qp->state(), QpState::err);
}

// ---- stopped in the middle ----

enum class Revoke { local_inv, to_error, window_freed, queue_pair_freed };

void revoke(ShmEnd& end, Revoke how) {
  switch (how) {
    case Revoke::local_inv:
      ASSERT_TRUE(end.post(Opcode::local_inv, 7, {}, 0, end.window->rkey()));
      EXPECT_EQ(end.next().wr_id, 7u);
      break;
    case Revoke::to_error:
      end.qp->to_error();
      EXPECT_EQ(end.drain_receives(), ShmEnd::kReceives);
      break;
    case Revoke::window_freed:
      end.window.reset();
      break;
    case Revoke::queue_pair_freed:
      end.qp.reset();
      break;
  }
}

class ShmStop : public ::testing::TestWithParam<Revoke> {};

TEST_P(ShmStop, ALateWriteDoesNotChangeOurMemory) {
  Victim victim({Opcode::rdma_write, SIGSTOP}, short_grace());
  ASSERT_EQ(victim.reason, "");
  ASSERT_TRUE(victim.grant());
  ASSERT_TRUE(victim.child.wait_stopped());
  std::byte* data = victim.end.memory->data();
  EXPECT_TRUE(all(data, 2 * kChunk, 0xaa)) << "two chunks had been written";
  EXPECT_TRUE(all(data + 2 * kChunk, (kChunks - 2) * kChunk, 0x11));
  revoke(victim.end, GetParam());
  EXPECT_TRUE(all(data, 2 * kChunk, 0xaa)) << "taking the pages back changed their content";
  std::memset(data, 0x22, ShmEnd::kMemoryBytes);

  victim.child.signal(SIGCONT);
  const auto status = hear<WcStatus>(victim.child.socket());
  ASSERT_TRUE(status);
  EXPECT_NE(*status, WcStatus::success);
  EXPECT_EQ(victim.child.wait(), 0);
  EXPECT_TRUE(all(data, ShmEnd::kMemoryBytes, 0x22)) << "written after the revocation had completed";
}

TEST_P(ShmStop, ALateReadSeesNothingNew) {
  Victim victim({Opcode::rdma_read, SIGSTOP}, short_grace());
  ASSERT_EQ(victim.reason, "");
  ASSERT_TRUE(victim.grant());
  ASSERT_TRUE(victim.child.wait_stopped());
  revoke(victim.end, GetParam());
  std::memset(victim.end.memory->data(), 0x5e, ShmEnd::kMemoryBytes);
  victim.child.signal(SIGCONT);
  EXPECT_EQ(victim.child.wait(), 0) << "5: the peer read what was written after the revocation";
}

std::string revoke_name(const ::testing::TestParamInfo<Revoke>& info) {
  constexpr const char* kNames[] = {"local_inv", "to_error", "window_freed", "queue_pair_freed"};
  return kNames[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Shm, ShmStop,
                         ::testing::Values(Revoke::local_inv, Revoke::to_error, Revoke::window_freed,
                                           Revoke::queue_pair_freed),
                         revoke_name);

TEST(ShmProcess, ALateSendDoesNotChangeAFlushedReceive) {
  Victim victim({Opcode::send, SIGSTOP}, short_grace());
  ASSERT_EQ(victim.reason, "");
  ASSERT_TRUE(victim.grant());
  ASSERT_TRUE(victim.child.wait_stopped());
  revoke(victim.end, Revoke::to_error);
  std::memset(victim.end.slab->data(), 0x22, victim.end.slab->size());
  victim.child.signal(SIGCONT);
  EXPECT_EQ(victim.child.wait(), 0);
  EXPECT_TRUE(all(victim.end.slab->data(), victim.end.slab->size(), 0x22));
}

TEST(ShmProcess, ARevocationThatCannotTakePagesBackWaitsForThePeer) {
  std::vector<std::byte> own(ShmEnd::kMemoryBytes);  // memory from outside of alloc_memory()
  Victim victim({Opcode::rdma_write, SIGSTOP}, {.revoke_grace_us = 0});
  ASSERT_EQ(victim.reason, "");
  if (!victim.end.device->capabilities().exposes_any_memory) {
    victim.child.signal(SIGKILL);
    GTEST_SKIP() << "not run: this system forbids process_vm_writev";
  }
  std::string error;
  const auto region =
      victim.end.device->reg_mr(own.data(), own.size(), access_local_write | access_mw_bind, &error);
  ASSERT_NE(region, nullptr) << error;
  ASSERT_TRUE(victim.grant(*region, region->addr()));
  ASSERT_TRUE(victim.child.wait_stopped());
  ASSERT_TRUE(victim.end.post(Opcode::local_inv, 7, {}, 0, victim.end.window->rkey()));
  Wc wc;
  for (int i = 0; i < 10000; ++i)
    ASSERT_EQ(victim.end.cq->poll({&wc, 1}), 0u) << "the peer is still in its copy";
  EXPECT_TRUE(victim.end.cq->arm()) << "waiting must not need a busy loop";
  victim.child.signal(SIGCONT);
  pollfd waiting{victim.end.cq->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 30000), 1) << "the peer wakes us when its copy has ended";
  victim.end.cq->acknowledge();
  EXPECT_EQ(victim.end.next().wr_id, 7u);
  EXPECT_EQ(victim.child.wait(), 0);
}

TEST(ShmProcess, ADeadPeerIsNotWaitedFor) {
  std::vector<std::byte> own(ShmEnd::kMemoryBytes);  // memory from outside of alloc_memory()
  Victim victim({Opcode::rdma_write, SIGKILL}, {.revoke_grace_us = 0});
  ASSERT_EQ(victim.reason, "");
  if (!victim.end.device->capabilities().exposes_any_memory) {
    GTEST_SKIP() << "not run: this system forbids process_vm_writev";
  }
  std::string error;
  const auto region =
      victim.end.device->reg_mr(own.data(), own.size(), access_local_write | access_mw_bind, &error);
  ASSERT_NE(region, nullptr) << error;
  ASSERT_TRUE(victim.grant(*region, region->addr()));
  EXPECT_EQ(victim.child.wait(), -SIGKILL);
  ASSERT_TRUE(victim.end.post(Opcode::local_inv, 7, {}, 0, victim.end.window->rkey()));
  EXPECT_EQ(victim.end.next().wr_id, 7u);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

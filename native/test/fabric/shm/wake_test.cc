// Tests two processes that sleep, wake each other, and count beyond the maximum of their counters. The tests
// check shm's wake-ups and wrap-around.
#include <poll.h>
#include <sched.h>

#include <cstring>

#include "fabric/shm/layout.h"
#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {
namespace {

// ---- wrap ----

TEST(ShmProcess, CountersWrapUnnoticed) {
  ShmEnd from, to;
  ASSERT_EQ(from.qp->connect(to.qp->local_address()), "");
  ASSERT_EQ(to.qp->connect(from.qp->local_address()), "");
  // Sends more messages than there are numbers before the wrap, with every number of cells.
  const std::uint32_t messages = 0u - shm::kFirstNumber + 64;
  for (std::uint32_t i = 0; i < messages; ++i) {
    const std::uint32_t bytes = 4 + i * 7 % (shm::kInlineMax - 3);
    std::memcpy(from.memory->data(), &i, sizeof i);
    const Sge sge = from.sge(0, bytes);
    ASSERT_TRUE(from.post(Opcode::send, i, {&sge, 1}));
    const Wc wc = to.next();
    ASSERT_EQ(wc.status, WcStatus::success) << i;
    ASSERT_EQ(wc.bytes, bytes) << i;
    std::uint32_t seen = 0;
    std::memcpy(&seen, to.slab->data() + (wc.wr_id - 1000) * ShmEnd::kSlotBytes, sizeof seen);
    ASSERT_EQ(seen, i);
    to.post_recv(wc.wr_id - 1000);
    ASSERT_EQ(from.next().wr_id, i);
  }
}

// ---- sleep and wake-up ----

void pin(std::size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

/// Receives one message, sleeping until it has arrived. Returns false when the wake-up is lost.
bool receive_asleep(ShmEnd& end) {
  Wc wc;
  while (true) {
    while (end.cq->poll({&wc, 1}) == 1) {
      if (wc.status != WcStatus::success) return false;
      if (wc.opcode != Opcode::recv) continue;
      end.post_recv(wc.wr_id - 1000);
      return true;
    }
    if (!end.cq->arm()) continue;
    pollfd waiting{end.cq->fd(), POLLIN, 0};
    if (::poll(&waiting, 1, 30000) != 1) return false;
    end.cq->acknowledge();
  }
}

bool send_one(const ShmEnd& end) {
  const Sge sge = end.sge(0, 32);
  SendWr wr;
  wr.sges = {&sge, 1};
  wr.signaled = true;
  return end.qp->post_send({&wr, 1}) == 1;
}

TEST(ShmProcess, NoWakeUpIsLost) {
  constexpr int kTurns = 100'000;
  cpu_set_t everywhere;
  ::sched_getaffinity(0, sizeof everywhere, &everywhere);
  for (const bool one_cpu : {true, false}) {
    SCOPED_TRACE(one_cpu ? "both on one CPU" : "each where it likes");
    const int turns = one_cpu ? kTurns : kTurns / 5;
    if (one_cpu) pin(0);
    ChildProcess child([turns](int socket) {
      ShmEnd end;
      ShmHello peer;
      if (!meet(end, socket, hello_of(end), &peer).empty()) return 1;
      for (int i = 0; i < turns; ++i) {
        if (!receive_asleep(end) || !send_one(end)) return 2;
      }
      hear<bool>(socket);
      return 0;
    });
    ShmEnd end;
    ShmHello theirs;
    ASSERT_EQ(meet(end, child.socket(), hello_of(end), &theirs), "");
    for (int i = 0; i < turns; ++i) {
      ASSERT_TRUE(send_one(end));
      ASSERT_TRUE(receive_asleep(end)) << "turn " << i;
    }
    tell(child.socket(), true);
    EXPECT_EQ(child.wait(), 0);
    ::sched_setaffinity(0, sizeof everywhere, &everywhere);
  }
}

TEST(ShmProcess, TellsWhetherAnAwakePeerRanOnThisCpu) {
  cpu_set_t everywhere;
  ::sched_getaffinity(0, sizeof everywhere, &everywhere);
  pin(0);
  ChildProcess child([](int socket) {
    ShmEnd end;
    ShmHello peer;
    if (!meet(end, socket, hello_of(end), &peer).empty()) return 1;
    tell(socket, true);  // this side is awake, on the shared CPU
    hear<bool>(socket);
    if (!end.cq->arm()) return 2;
    tell(socket, true);  // this side is asleep
    hear<bool>(socket);
    return 0;
  });
  ShmEnd end;
  ShmHello theirs;
  ASSERT_EQ(meet(end, child.socket(), hello_of(end), &theirs), "");
  ASSERT_TRUE(hear<bool>(child.socket()));
  EXPECT_TRUE(end.cq->peer_shares_cpu());
  tell(child.socket(), true);
  ASSERT_TRUE(hear<bool>(child.socket()));
  EXPECT_FALSE(end.cq->peer_shares_cpu()) << "a sleeper wants no CPU";
  ASSERT_TRUE(send_one(end));
  EXPECT_TRUE(end.cq->peer_shares_cpu()) << "it has been woken, and has not run yet";
  tell(child.socket(), true);
  EXPECT_EQ(child.wait(), 0);
  ::sched_setaffinity(0, sizeof everywhere, &everywhere);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

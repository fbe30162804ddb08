// Tests the hooks of the simulated world: injected faults, held completions, stopped and killed peers,
// refused creations.
#include <vector>

#include "fabric/sim/pair.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr WcStatus kFailures[] = {
    WcStatus::loc_len_err,     WcStatus::loc_qp_op_err,  WcStatus::loc_prot_err,  WcStatus::mw_bind_err,
    WcStatus::rem_inv_req_err, WcStatus::rem_access_err, WcStatus::retry_exc_err, WcStatus::rnr_retry_exc_err,
    WcStatus::rem_abort_err,   WcStatus::general_err};

class SimHooks : public ::testing::TestWithParam<SimMode> {
 protected:
  SimOptions options() const { return {.mode = GetParam()}; }
};

// Posts five requests, of all common kinds, with wr_ids 0 to 4.
constexpr std::uint64_t kScript = 5;
void post_script(SimPair& pair) {
  const Opcode opcodes[kScript] = {Opcode::send, Opcode::rdma_write, Opcode::rdma_read, Opcode::send,
                                   Opcode::rdma_write};
  for (std::uint64_t i = 0; i < kScript; ++i) pair.receive(pair.server, 100 + i);
  for (std::uint64_t i = 0; i < kScript; ++i) pair.post(pair.client, opcodes[i], i);
}

TEST_P(SimHooks, AnyRequestCanFailWithAnyStatus) {
  for (std::uint64_t nth = 1; nth <= kScript; ++nth) {
    for (const WcStatus status : kFailures) {
      SCOPED_TRACE(std::to_string(nth) + " " + to_string(status));
      SimPair pair(options());
      pair.world.fail({.device = pair.client.device.get(), .nth = nth, .status = status});
      post_script(pair);
      const std::vector<Wc> done = pair.finish(pair.client);
      ASSERT_EQ(done.size(), kScript) << "each request completes exactly once";
      for (std::uint64_t i = 0; i < kScript; ++i) {
        EXPECT_EQ(done[i].wr_id, i);
        EXPECT_EQ(done[i].status, i + 1 < nth    ? WcStatus::success
                                  : i + 1 == nth ? status
                                                 : WcStatus::wr_flush_err);
      }
      EXPECT_EQ(pair.client.qp->state(), QpState::err);
      const bool told = status == WcStatus::rem_access_err || status == WcStatus::rem_inv_req_err;
      EXPECT_EQ(pair.server.qp->state(), told ? QpState::err : QpState::rts);
      EXPECT_EQ(pair.world.counters().faults, 1u);
    }
  }
}

TEST_P(SimHooks, AFaultCanAimAtAKindOfRequest) {
  SimPair pair(options());
  pair.world.fail({.opcode = Opcode::send, .nth = 2, .status = WcStatus::general_err});
  post_script(pair);
  const std::vector<Wc> done = pair.finish(pair.client);
  ASSERT_EQ(done.size(), kScript);
  EXPECT_EQ(done[2].status, WcStatus::success);
  EXPECT_EQ(done[3].status, WcStatus::general_err);
}

TEST_P(SimHooks, AFaultCanAimAtAQueuePair) {
  SimPair pair(options());
  pair.world.fail({.qp_num = pair.server.qp->qp_num(), .nth = 1, .status = WcStatus::general_err});
  post_script(pair);
  for (const Wc& wc : pair.finish(pair.client)) EXPECT_EQ(wc.status, WcStatus::success);
  SimPair::poll(pair.server);
  pair.receive(pair.client, 1);
  pair.post(pair.server, Opcode::send, 2);
  EXPECT_EQ(pair.finish(pair.server).at(0).status, WcStatus::general_err);
}

TEST_P(SimHooks, AReceiveCanFail) {
  SimPair pair(options());
  pair.world.fail({.opcode = Opcode::recv, .nth = 2, .status = WcStatus::general_err});
  post_script(pair);
  const std::vector<Wc> received = pair.finish(pair.server);
  ASSERT_EQ(received.size(), kScript);
  EXPECT_EQ(received[0].status, WcStatus::success);
  EXPECT_EQ(received[1].status, WcStatus::general_err);
  EXPECT_EQ(received[2].status, WcStatus::wr_flush_err);
  EXPECT_EQ(pair.finish(pair.client)[3].status, WcStatus::rem_inv_req_err);
}

TEST_P(SimHooks, HeldCompletionsArriveInOrderWhenReleased) {
  SimPair pair(options());
  pair.world.hold_completions(pair.client.qp->qp_num());
  post_script(pair);
  EXPECT_EQ(pair.finish(pair.server).size(), 2u) << "the work itself is done";
  EXPECT_TRUE(pair.finish(pair.client).empty());
  pair.world.release_completions(pair.client.qp->qp_num());
  const std::vector<Wc> done = pair.finish(pair.client);
  ASSERT_EQ(done.size(), kScript);
  for (std::uint64_t i = 0; i < kScript; ++i) EXPECT_EQ(done[i].wr_id, i);
}

TEST_P(SimHooks, CompletionsNeverReleasedEndWithTheirQueuePair) {
  SimPair pair(options());
  pair.world.hold_completions(pair.client.qp->qp_num());
  post_script(pair);
  pair.finish(pair.server);
  pair.client.qp.reset();
  EXPECT_TRUE(pair.finish(pair.client).empty());
}

TEST_P(SimHooks, AStoppedDeviceMakesOthersWaitWithoutAnError) {
  SimPair pair(options());
  pair.world.stop(*pair.server.device);
  post_script(pair);
  EXPECT_TRUE(pair.finish(pair.client).empty());
  EXPECT_TRUE(pair.finish(pair.server).empty());
  pair.world.resume(*pair.server.device);
  const std::vector<Wc> done = pair.finish(pair.client);
  ASSERT_EQ(done.size(), kScript);
  for (const Wc& wc : done) EXPECT_EQ(wc.status, WcStatus::success);
}

TEST_P(SimHooks, AStoppedDeviceStartsNothing) {
  SimPair pair(options());
  pair.world.stop(*pair.client.device);
  post_script(pair);
  EXPECT_TRUE(pair.finish(pair.client).empty());
  EXPECT_EQ(pair.world.counters().of(Opcode::send), 0u);
  pair.world.resume(*pair.client.device);
  EXPECT_EQ(pair.finish(pair.client).size(), kScript);
}

TEST_P(SimHooks, AKilledPeerIsFoundOutBySending) {
  for (const WcStatus seen : {WcStatus::retry_exc_err, WcStatus::rem_abort_err}) {
    SimPair pair(options());
    pair.receive(pair.client, 50);
    pair.world.kill(*pair.server.device, seen);
    EXPECT_TRUE(pair.finish(pair.client).empty()) << "a receiver hears nothing";
    pair.post(pair.client, Opcode::rdma_write, 1);
    const std::vector<Wc> done = pair.finish(pair.client);
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].wr_id, 1u);
    EXPECT_EQ(done[0].status, seen);
    EXPECT_EQ(done[1].status, WcStatus::wr_flush_err);
    EXPECT_TRUE(pair.finish(pair.server).empty());
  }
}

TEST_P(SimHooks, OneQueuePairCanBeKilledAlone) {
  SimPair pair(options());
  const auto other = pair.client.device->create_qp(*pair.client.cq, {}, nullptr);
  const auto far = pair.server.device->create_qp(*pair.server.cq, {}, nullptr);
  ASSERT_EQ(other->connect(far->local_address()), "");
  ASSERT_EQ(far->connect(other->local_address()), "");
  pair.world.kill(pair.server.qp->qp_num());
  for (QueuePair* qp : {pair.client.qp.get(), other.get()}) {
    const SendWr wr = request(Opcode::rdma_write, qp->qp_num(), {});
    ASSERT_EQ(qp->post_send({&wr, 1}), 1u);
    const auto done = pair.finish(pair.client);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, qp == other.get() ? WcStatus::success : WcStatus::retry_exc_err);
  }
}

TEST_P(SimHooks, AKilledAndDestroyedPeerGivesTheSameError) {
  SimPair pair(options());
  pair.world.kill(*pair.server.device, WcStatus::retry_exc_err);
  pair.server.qp.reset();
  pair.post(pair.client, Opcode::rdma_write, 1);
  EXPECT_EQ(pair.finish(pair.client).at(0).status, WcStatus::retry_exc_err);
}

TEST_P(SimHooks, RequestsWaitingForAPeerFailWhenItIsKilled) {
  SimPair pair(options());
  pair.world.stop(*pair.server.device);
  post_script(pair);
  pair.world.kill(*pair.server.device);
  const std::vector<Wc> done = pair.finish(pair.client);
  ASSERT_EQ(done.size(), kScript);
  EXPECT_EQ(done[0].status, WcStatus::retry_exc_err);
}

TEST_P(SimHooks, EveryCreationCanBeRefused) {
  SimWorld world(options());
  const auto device = world.open_device();
  const auto start = device->counters();
  std::byte buffer[64];
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    world.fail_nth(SimResource::memory, nth);
    world.fail_nth(SimResource::region, nth);
    world.fail_nth(SimResource::window, nth);
    world.fail_nth(SimResource::completion_queue, nth);
    world.fail_nth(SimResource::queue_pair, nth);
    for (std::uint64_t i = 1; i <= 4; ++i) {
      const bool refused = i == nth;
      std::string error;
      EXPECT_EQ(device->alloc_memory(4096, "test") == nullptr, refused);
      EXPECT_EQ(device->reg_mr(buffer, 64, kAllRights, &error) == nullptr, refused);
      EXPECT_EQ(!error.empty(), refused);
      EXPECT_EQ(device->alloc_mw() == nullptr, refused);
      auto cq = device->create_cq(16);
      EXPECT_EQ(cq == nullptr, refused);
      if (cq == nullptr) cq = device->create_cq(16);
      error.clear();
      EXPECT_EQ(device->create_qp(*cq, {}, &error) == nullptr, refused);
      EXPECT_EQ(!error.empty(), refused);
    }
  }
  EXPECT_EQ(device->counters().memory_regions, start.memory_regions);
  EXPECT_EQ(device->counters().memory_windows, start.memory_windows);
  EXPECT_EQ(device->counters().queue_pairs, start.queue_pairs);
  EXPECT_EQ(device->counters().open_fds, start.open_fds);
}

TEST_P(SimHooks, CountersTellWhatWasCarriedOut) {
  SimPair pair(options());
  post_script(pair);
  pair.finish(pair.client);
  const SimCounters counters = pair.world.counters();
  EXPECT_EQ(counters.of(Opcode::send), 2u);
  EXPECT_EQ(counters.of(Opcode::recv), 2u);
  EXPECT_EQ(counters.of(Opcode::rdma_write), 2u);
  EXPECT_EQ(counters.of(Opcode::rdma_read), 1u);
  EXPECT_EQ(counters.completions, kScript + 2);
  EXPECT_EQ(counters.cq_overruns, 0u);
}

TEST_P(SimHooks, ACompletionQueueThatIsTooSmallIsNoticed) {
  SimPair pair(options(), 2);
  post_script(pair);
  EXPECT_EQ(pair.finish(pair.client).size(), kScript) << "nothing is lost here, unlike on a NIC";
  EXPECT_GT(pair.world.counters().cq_overruns, 0u);
}

INSTANTIATE_TEST_SUITE_P(Sim, SimHooks, ::testing::Values(SimMode::immediate, SimMode::scheduled),
                         [](const auto& info) {
                           return std::string(info.param == SimMode::immediate ? "immediate" : "scheduled");
                         });

}  // namespace
}  // namespace rdma_rpc::fabric::test

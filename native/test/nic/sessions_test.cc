// Tests the resources that sessions request from a NIC: queues of the size that they use, and not more.
#include <algorithm>
#include <bit>
#include <chrono>
#include <map>

#include "nic/open.h"
#include "session/suite/device_suite.h"

namespace rdma_rpc::session::test {
namespace {

using nic::Machine;

TEST(SessionOnANic, AsksForQueuesOfTheSizeThatItUses) {
  Machine machine;
  nic::Nic* nics[2] = {&machine.add(nic::named("nic0")), &machine.add(nic::named("nic1"))};
  for (nic::Nic* each : nics) each->profile.inline_max = 512;
  Ends ends(nic::open(*nics[0]), nic::open(*nics[1]));
  const Link link = ends.connect();
  ends.expect_works(link);
  for (const nic::Nic* each : nics) {
    const ibv_qp_cap& cap = each->made.back();
    EXPECT_EQ(std::popcount(cap.max_send_wr), 1) << cap.max_send_wr << ": a NIC rounds up";
    EXPECT_EQ(cap.max_send_sge, 12u);
    EXPECT_EQ(cap.max_inline_data, 220u);
  }
  EXPECT_EQ(ends.finish(), std::vector<std::string>{});
}

/// Makes a call with 1 MiB in each direction, and returns the number of requests on both NICs by opcode.
std::map<ibv_wr_opcode, std::uint32_t> requests_of_a_large_call(Exposure exposure) {
  Machine machine;
  nic::Nic* nics[2] = {&machine.add(nic::named("nic0")), &machine.add(nic::named("nic1"))};
  Ends ends(nic::open(*nics[0]), nic::open(*nics[1]), exposure);
  const Link link = ends.connect();
  const CallSpec large{.request_bytes = 1 << 20, .request_in_arena = true, .response_bytes = 1 << 20};
  EXPECT_TRUE(ends.complete(link, large).answered());
  for (nic::Nic* each : nics) each->carried_out.clear();
  EXPECT_TRUE(ends.complete(link, large).answered());
  std::map<ibv_wr_opcode, std::uint32_t> sum;
  for (const nic::Nic* each : nics) {
    for (const auto& [opcode, count] : each->carried_out) sum[opcode] += count;
  }
  EXPECT_EQ(ends.finish(), std::vector<std::string>{});
  return sum;
}

using Requests = std::map<ibv_wr_opcode, std::uint32_t>;

/// On a NIC without windows, staging costs copies but no additional requests. Staging saves the requests that
/// bind and invalidate windows.
TEST(LargeCallOnANic, TakesTheseRequests) {
  EXPECT_EQ(requests_of_a_large_call(Exposure::automatic), (Requests{{IBV_WR_RDMA_WRITE, 8},
                                                                     {IBV_WR_SEND, 1},
                                                                     {IBV_WR_RDMA_READ, 2},
                                                                     {IBV_WR_LOCAL_INV, 1},
                                                                     {IBV_WR_BIND_MW, 2},
                                                                     {IBV_WR_SEND_WITH_INV, 1}}));
  const Requests bare{{IBV_WR_RDMA_WRITE, 8}, {IBV_WR_SEND, 2}, {IBV_WR_RDMA_READ, 2}};
  EXPECT_EQ(requests_of_a_large_call(Exposure::staging), bare);
  EXPECT_EQ(requests_of_a_large_call(Exposure::shared), bare);
}

}  // namespace
}  // namespace rdma_rpc::session::test

namespace rdma_rpc::nic {
namespace {

/// By default, calls continue when a bond (LAG) loses all packets for a second while it fails over.
TEST(SessionOnANic, SurvivesAPauseOfASecond) {
  using session::test::CallSpec;
  Machine machine;
  Nic* nics[2] = {&machine.add(named("nic0")), &machine.add(named("nic1"))};
  session::test::Ends ends(open(*nics[0]), open(*nics[1]));
  const auto link = ends.connect();
  std::vector<std::uint64_t> calls;
  nics[1]->lose_link();
  for (const std::uint32_t bytes : {100u, 300'000u})
    calls.push_back(ends.start(link, CallSpec{.request_bytes = bytes, .request_in_arena = bytes > 1'000}));
  ends.client.flush();
  for (int i = 0; i < 20; ++i) ends.step();
  for (const std::uint64_t call : calls) EXPECT_FALSE(ends.call(call).ended());
  nics[1]->find_link(std::chrono::milliseconds(1'000));
  const auto all_ended = [&] {
    return std::all_of(calls.begin(), calls.end(), [&](std::uint64_t id) { return ends.call(id).ended(); });
  };
  EXPECT_TRUE(ends.until(all_ended, "the answers"));
  for (const std::uint64_t call : calls) EXPECT_TRUE(ends.call(call).answered()) << ends.why_down(link);
  EXPECT_EQ(ends.finish(), std::vector<std::string>{});
}

TEST(QueuePairOnANic, CountsTheMemoryOfItsQueues) {
  Machine machine;
  const auto device = open(machine.add(capable()));
  const auto cq = device->create_cq(16);
  const std::uint64_t before = device->counters().memory_bytes;
  std::string error;
  const std::uint32_t own = device->capabilities().own_sends;
  auto qp = device->create_qp(
      *cq, {.send_wr_max = 512 - own, .recv_wr_max = 256, .max_sge = 12, .max_inline = 220}, &error);
  ASSERT_NE(qp, nullptr) << error;
  EXPECT_EQ(device->counters().memory_bytes - before, 512u * 256 + 256u * 16);
  qp.reset();
  EXPECT_EQ(device->counters().memory_bytes, before);
}

}  // namespace
}  // namespace rdma_rpc::nic

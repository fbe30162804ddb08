// Contains the table of features. Each feature is executed on a fabric that has it, and is refused with its
// reason on a fabric that lacks it. The test prints a line for each feature; together they are the table of
// this fabric.
#include <cstdio>

#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

constexpr Feature kAll[] = {
    Feature::send_with_imm,   Feature::write_with_imm, Feature::windows, Feature::atomics, Feature::solicited,
    Feature::shared_receives, Feature::srq_limit,      Feature::uc,      Feature::ud,      Feature::multicast,
    Feature::drain,           Feature::reset,          Feature::steps,   Feature::xrc};
static_assert(std::size(kAll) == kFeatures);

/// Posts the request on the fixture's pair. Returns its status.
WcStatus FabricSuite::outcome(SendWr wr, std::uint32_t rights) {
  Memory& local = memory(client_, 64, kAllRights);
  Memory& target = memory(server_, 64, rights);
  const Sge sge = local.sge(0, 8);
  wr.wr_id = 1;
  wr.signaled = true;
  wr.sges = {&sge, 1};
  wr.remote_addr = target.addr();
  wr.rkey = target.rkey();
  post_recv(server_, 2, target.sge(0, 64));
  post(client_, wr);
  const WcStatus status = next(client_).status;
  settle();
  server_.completions.clear();
  return status;
}

/// Returns whether a receiver that waits for solicited messages sleeps through an unsolicited message.
bool FabricSuite::sleeps_through_a_message() {
  settle();
  server_.cq->acknowledge();
  post_recv(server_, 2, {});
  if (!server_.cq->arm_solicited()) return false;
  post(client_, request(Opcode::send, 1, {}));
  settle_without_polling();
  const bool sleeps = caps().solicited ? !is_readable(server_) : !becomes_readable(server_);
  server_.cq->acknowledge();
  expect(server_, 2);
  expect(client_, 1);
  return sleeps;
}

/// Tries the feature. Returns "" when it was executed, or how it was refused.
std::string FabricSuite::attempt(Feature feature) {
  const auto text = [](WcStatus status) {
    return status == WcStatus::success ? std::string() : std::string(to_string(status));
  };
  const Gid group = group_of_tests();
  std::string error;
  SendWr wr;
  switch (feature) {
    case Feature::send_with_imm:
      wr.opcode = Opcode::send_with_imm;
      return text(outcome(wr, kAllRights));
    case Feature::write_with_imm:
      wr.opcode = Opcode::rdma_write_with_imm;
      return text(outcome(wr, kAllRights));
    case Feature::windows:
      return client_.device->alloc_mw() != nullptr || caps().windows ? "" : "no window";
    case Feature::atomics:
      wr.opcode = Opcode::atomic_fetch_and_add;
      wr.atomic = {1, 0};
      return text(outcome(wr, kAllRights | (caps().atomics ? access_remote_atomic : 0u)));
    case Feature::solicited:
      return sleeps_through_a_message() ? "" : "every message wakes";
    case Feature::shared_receives:
      client_.device->create_receive_queue(*client_.cq, 16, &error);
      return error;
    case Feature::srq_limit: {
      const auto queue = client_.device->create_receive_queue(*client_.cq, 16, &error);
      return queue == nullptr ? error : queue->arm_limit(4);
    }
    case Feature::uc:
    case Feature::ud: {
      const QpType type = feature == Feature::uc ? QpType::uc : QpType::ud;
      client_.device->create_qp(*client_.cq, {.type = type}, &error);
      return error;
    }
    case Feature::multicast:
      if (caps().ud) recreate({.type = QpType::ud, .send_wr_max = 4, .recv_wr_max = 4});
      if (caps().ud && !client_.qp->connect({}).empty()) return "the UD queue pair does not connect";
      error = client_.qp->attach_multicast(group);
      return error.empty() ? client_.qp->detach_multicast(group) : error;
    case Feature::drain:
      error = client_.qp->move_to(QpState::sqd);
      // Soft-RoCE goes on only when it has reported that the queue is drained.
      for (int i = 0; i < 1000 && error.empty(); ++i) {
        AsyncEvent event;
        if (client_.device->poll_events({&event, 1}) == 1) break;
        settle();
        client_.cq->acknowledge();
      }
      return error.empty() ? client_.qp->move_to(QpState::rts) : error;
    case Feature::reset:
      client_.qp->to_error();
      settle();
      client_.completions.clear();
      error = client_.qp->move_to(QpState::reset);
      return error.empty() ? client_.qp->move_to(QpState::init) : error;
    case Feature::steps: {
      const auto qp = client_.device->create_qp(*client_.cq, {.stepwise = true}, &error);
      return qp == nullptr ? error : qp->move_to(QpState::init);
    }
    case Feature::xrc:
      return "no fabric has it";
  }
  return "not tried";
}

TEST_P(FabricSuite, EachFeatureRunsOrIsRefusedWithItsReason) {
  for (const Feature feature : kAll) {
    SCOPED_TRACE(to_string(feature));
    recreate({.send_wr_max = 16, .recv_wr_max = 16});
    connect();
    const std::string why = caps().why_not(feature), refused = attempt(feature);
    std::printf("  %-20s %-55s %s\n", GetParam().name.c_str(), to_string(feature),
                why.empty() ? "run" : ("refused: " + why).c_str());
    EXPECT_EQ(caps().has(feature), why.empty());
    EXPECT_EQ(refused.empty(), why.empty())
        << "Capabilities says '" << why << "', the fabric '" << refused << "'";
    if (why.empty()) continue;
    EXPECT_NE(why.find(caps().name), std::string::npos);
    EXPECT_NE(why.find(to_string(feature)), std::string::npos);
    EXPECT_NE(why.find(": "), std::string::npos) << "no reason: " << why;
  }
}

}  // namespace rdma_rpc::fabric::test

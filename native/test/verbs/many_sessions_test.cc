// A server has 200 sessions from two processes. One of the processes is killed while all sessions are busy.
// The hundred sessions of that process end, and the others are not affected.
#include <gtest/gtest.h>
#include <signal.h>

#include "verbs/devices/census.h"
#include "verbs/peer/peer_process.h"

namespace rdma_rpc::session::test {
namespace {

constexpr std::uint32_t kSessions = 100, kInflightMax = 2;

class ManySessions : public VerbsFaults {};

/// Waits until all calls of the client have ended, without a time limit, and returns its report.
ReportMessage report_of(PeerProcess& client, Side& server) {
  ReportMessage report;
  drive(
      {&server}, [&] { return (report = client.ask(Order::report, {&server})).open == 0; },
      "the end of a client's calls");
  return report;
}

TEST_F(ManySessions, HalfOfThemKilledTheOthersContinue) {
  Ledger foreign_calls;
  expect_foreign_calls(foreign_calls);
  Side server(foreign_calls, open_device(kServerEnd), small_context());
  PeerProcess killed(kClientEnd), kept(kClientEnd);
  std::vector<std::uint32_t> of_killed, of_kept;
  for (std::uint32_t i = 0; i < kSessions; ++i) {
    of_killed.push_back(killed.connect_as_client_of(server, kInflightMax));
    of_kept.push_back(kept.connect_as_client_of(server, kInflightMax));
    ASSERT_FALSE(HasFailure()) << "at session " << i;
  }
  const CallSpec small{}, bulk{.request_bytes = 5000, .response_bytes = 5000};
  for (PeerProcess* client : {&killed, &kept}) {
    client->ask({.order = Order::start, .spec = small}, {&server});
    client->ask({.order = Order::start, .spec = bulk}, {&server});
    const ReportMessage report = report_of(*client, server);
    EXPECT_EQ(report.answered, 2 * kSessions);
    EXPECT_EQ(report.violations, 0u) << report.violation();
  }
  // Calls of all sessions are in handlers when one process ends.
  CallSpec held = bulk;
  held.answer = Answer::later;
  killed.ask({.order = Order::start, .spec = held}, {&server});
  kept.ask({.order = Order::start, .spec = held}, {&server});
  drive(
      {&server}, [&] { return server.unanswered() == 2 * kSessions; }, "the requests of all");
  killed.signal(SIGKILL);
  for (const std::uint32_t number : of_killed) {
    if (Session* session = server.context->find(number)) session->close("the sideband connection ended");
  }
  const auto all_down = [&] {
    return std::all_of(of_killed.begin(), of_killed.end(),
                       [&](auto number) { return server.is_down(number); });
  };
  drive({&server}, all_down, "the end of half of the sessions");
  EXPECT_EQ(server.unanswered(), kSessions);
  while (server.answer()) server.turn(real_now_ns());
  kept.ask({.order = Order::start, .spec = bulk}, {&server});
  const ReportMessage report = report_of(kept, server);
  EXPECT_EQ(report.answered, 4 * kSessions);
  EXPECT_EQ(report.failed + report.open, 0u);
  EXPECT_EQ(report.up, kSessions);
  kept.quit({&server});
  close_down(server, of_kept, "server");
  audit(server, "server");
  EXPECT_EQ(foreign_calls.violations(false), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

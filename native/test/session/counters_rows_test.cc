// Tests rows of the counters page. As long as there are at most as many open sessions as rows, each open
// session has a row, independent of the number of earlier sessions and of how they ended.
#include <gtest/gtest.h>

#include <algorithm>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

/// Number of sessions at one time, more than there are rows.
constexpr std::uint32_t kMany = telemetry::kSessionRows + 100;

/// Returns the session's row, or null when it has none.
const telemetry::SessionRow* row_of(Side& side, std::uint32_t number) {
  side.context->report_sessions();
  const std::span rows(side.context->page().sessions(), telemetry::kSessionRows);
  const auto at = std::ranges::find_if(
      rows, [&](const telemetry::SessionRow& row) { return row.state != 0 && row.number == number; });
  return at == rows.end() ? nullptr : &*at;
}

std::ptrdiff_t rows_taken(Side& side) {
  side.context->report_sessions();
  const std::span rows(side.context->page().sessions(), telemetry::kSessionRows);
  return std::ranges::count_if(rows, [](const telemetry::SessionRow& row) { return row.state != 0; });
}

enum class Way { never_connected, closed_while_connecting, peer_gone_while_connecting, connected };
const char* const kNames[] = {"NeverConnected", "ClosedWhileConnecting", "PeerGoneWhileConnecting",
                              "Connected"};

class CountersRows : public testing::TestWithParam<Way> {
 protected:
  static PairOptions options() {
    PairOptions options = immediate();
    options.sim.connects_late = GetParam() != Way::connected;
    options.inflight_max = 1;
    options.connect = false;
    return options;
  }
  /// Opens one more session on each side, if this way of ending needs it.
  std::pair<std::uint32_t, std::uint32_t> open() {
    if (GetParam() != Way::never_connected) {
      std::pair<std::uint32_t, std::uint32_t> both;
      connect(pair.client, both.first, pair.server, both.second, options());
      return both;
    }
    SessionOptions session;
    session.inflight_max = 1;
    const std::uint32_t client = pair.client.open(session);
    session.client = false;
    return {client, pair.server.open(session)};
  }
  void end(const std::pair<std::uint32_t, std::uint32_t>& both) {
    pair.client.session(both.first).close("the test wants it");
    if (GetParam() == Way::peer_gone_while_connecting) pair.run();
    if (!pair.server.is_down(both.second)) pair.server.session(both.second).close("the test wants it");
    pair.run();  // the completion queue is too short for the flushed receives of many sessions
  }

  Pair pair{options()};
};

TEST_P(CountersRows, AreFreeForNewSessionsAfterManyHaveEnded) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> many;
  for (std::uint32_t i = 0; i < kMany; ++i) many.push_back(open());
  if (GetParam() == Way::connected) pair.run();
  EXPECT_EQ(rows_taken(pair.server), telemetry::kSessionRows);
  for (const auto& both : many) end(both);
  EXPECT_EQ(pair.server.context->session_count(), 0u);
  EXPECT_EQ(rows_taken(pair.client) + rows_taken(pair.server), 0);
  // Each session gets the table entry that has been free for longest, so each session gets a different entry.
  for (std::uint32_t i = 0; i < kMany; ++i) {
    const auto both = open();
    EXPECT_NE(row_of(pair.client, both.first), nullptr) << "client session " << i << " after the many";
    EXPECT_NE(row_of(pair.server, both.second), nullptr) << "server session " << i << " after the many";
    end(both);
    if (HasFailure()) break;
  }
  EXPECT_EQ(rows_taken(pair.client) + rows_taken(pair.server), 0);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST_P(CountersRows, GoToOlderSessionsWithoutARowWhenOthersEnd) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> many;
  for (std::uint32_t i = 0; i < kMany; ++i) many.push_back(open());
  const auto last = many.back();
  pair.server.context->name_session(last.second, "the last of many", 2);
  EXPECT_EQ(row_of(pair.server, last.second), nullptr);
  EXPECT_EQ(pair.server.context->name_of_session(last.second), "the last of many");
  many.pop_back();
  for (const auto& both : many) end(both);
  const telemetry::SessionRow* row = row_of(pair.server, last.second);
  ASSERT_NE(row, nullptr);
  EXPECT_STREQ(row->peer, "the last of many");
  EXPECT_EQ(row->security, 2u);
  end(last);
  // The next session in that row is a different one.
  const auto next = open();
  row = row_of(pair.server, next.second);
  ASSERT_NE(row, nullptr);
  EXPECT_STREQ(row->peer, "");
  EXPECT_EQ(row->security, 0u);
  end(next);
  EXPECT_EQ(pair.finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(, CountersRows,
                         testing::Values(Way::never_connected, Way::closed_while_connecting,
                                         Way::peer_gone_while_connecting, Way::connected),
                         [](const auto& tested) { return kNames[static_cast<std::size_t>(tested.param)]; });

}  // namespace
}  // namespace rdma_rpc::session::test

// Tests 300 sessions that end at once, as when a host dies or a server is stopped. A command takes a NIC some
// 100 us on the thread of the event loop, and the loop must not stop for more than 50 ms.
#include <algorithm>
#include <vector>

#include "nic/device/objects.h"
#include "nic/device/profiles.h"
#include "nic/open.h"
#include "session/suite/device_suite.h"

namespace rdma_rpc::nic {
namespace {

constexpr std::uint32_t kSessions = 300;
constexpr std::uint64_t kCommandsAtOnce = 500;  // 50 ms
/// Closing is not urgent, so it is spread over more iterations, of 10 ms.
constexpr std::uint64_t kClosingCommandsAtOnce = 100;

/// The NICs have windows, no windows, no shared receives, and windows that only the driver promises.
class ManySessions : public testing::TestWithParam<const char*> {
 protected:
  ManySessions() {
    for (std::uint32_t i = 0; i < kSessions; ++i) links_.push_back(ends_.connect(2));
  }
  Nic& client() { return *nics_[0]; }
  /// Runs iterations of the client until it has no session and no queue pair. Returns the largest number of
  /// commands in one iteration.
  std::uint64_t most_commands_of_an_iteration() {
    std::uint64_t most = 0;
    const auto over = [&] {
      return ends_.client.context->session_count() == 0 && client().live.queue_pairs == 0;
    };
    for (int i = 0; i < 1'000'000 && !over(); ++i) {
      const std::uint64_t before = client().commands;
      ends_.client.turn(session::test::real_now_ns());
      most = std::max(most, client().commands - before);
    }
    EXPECT_TRUE(over()) << client().live.queue_pairs << " queue pairs are left";
    return most;
  }

  Machine machine_;
  Nic* nics_[2] = {&machine_.add(named("nic0", profile_named(GetParam()))),
                   &machine_.add(named("nic1", profile_named(GetParam())))};
  session::test::Ends ends_{open(*nics_[0]), open(*nics_[1])};
  std::vector<session::test::Link> links_;
};

/// Each session has a call under way, since bnxt_re reports nothing about an idle queue pair that has ended.
TEST_P(ManySessions, ThatTheNicEndsDoNotStopTheLoop) {
  std::vector<Qp*> ended;
  for (const auto& [number, qp] : queue_pairs()) {
    if (&qp->nic() == &client()) ended.push_back(qp);
  }
  ASSERT_EQ(ended.size(), kSessions);
  for (Qp* qp : ended) qp->fail();
  for (const auto& link : links_) ends_.start(link, {});
  EXPECT_LE(most_commands_of_an_iteration(), kCommandsAtOnce);
  for (const auto& link : links_) EXPECT_TRUE(ends_.client.is_down(link.client));
  ends_.finish();
}

TEST_P(ManySessions, ThatThisSideClosesInOneTurnDoNotStopTheLoop) {
  const std::uint64_t before = client().commands;
  for (const auto& link : links_) ends_.client.session(link.client).close("it is stopped");
  EXPECT_LE(client().commands - before, kCommandsAtOnce) << "while they are closed";
  EXPECT_LE(most_commands_of_an_iteration(), kClosingCommandsAtOnce);
  ends_.finish();
}

INSTANTIATE_TEST_SUITE_P(Nic, ManySessions, testing::Values("mlx5", "hns", "irdma", "bnxt_re"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rdma_rpc::nic

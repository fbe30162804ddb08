// Tests a completion queue that is never found empty, because the frames of one session fill every poll. A
// request of another session waits for all older completions, but it must not wait for that session.
#include <gtest/gtest.h>

#include "session/sides/client_group.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

PairOptions many_calls() {
  PairOptions options = immediate(ClientGroup::large_messages());
  options.inflight_max = 256;
  options.context.send_slots = 1024;
  return options;
}

/// One client always has as many small calls in progress as its limit allows.
struct Flood : ClientGroup {
  explicit Flood(const PairOptions& options = many_calls()) : ClientGroup(2, options) { pour(); }
  void pour() {
    while (clients[0].start(at_client[0], {}) != 0) {
    }
    clients[0].flush();
  }
  /// Returns how many turns of the server a call of the other client takes.
  int turns_of(const CallSpec& spec) {
    const std::uint64_t id = start(1, spec);
    for (int turns = 1; turns <= 1000; ++turns) {
      pour();
      step();
      if (ledger.at(id).ended()) return turns;
    }
    return 1000;
  }
};

TEST(FullQueue, KeepsNoLargeRequestOfAnotherSessionFromItsHandler) {
  Flood group;
  EXPECT_LT(group.turns_of({.request_bytes = 4 << 20}), 50);
  EXPECT_LT(group.turns_of({.request_bytes = 100'000, .response_bytes = 100'000}), 50);
  EXPECT_EQ(group.finish(), Violations{});
}

/// A device that hides its completions does not report what its queue contains. Therefore the request waits
/// until as many completions have been polled as the queue can hold.
TEST(FullQueue, KeepsNoLargeRequestOfAnotherSessionForLongWhereTheDeviceSaysNothing) {
  PairOptions options = many_calls();
  options.sim.hides_completions = true;
  Flood group(options);
  EXPECT_LT(group.turns_of({.request_bytes = 4 << 20}), 500);
  EXPECT_LT(group.turns_of({.request_bytes = 100'000, .response_bytes = 100'000}), 500);
  EXPECT_EQ(group.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

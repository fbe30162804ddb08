// A completion queue that is never found empty, since one session's frames fill every poll of it: what waits
// until all has been seen that came before must not wait for that session.
#include <gtest/gtest.h>

#include "session/sides/crowd.h"

namespace rdma_rpc::session::test {
namespace {

using Violations = std::vector<std::string>;

PairOptions many_calls() {
  PairOptions options = immediate(Crowd::large_messages());
  options.inflight_max = 256;
  options.context.send_slots = 1024;
  return options;
}

/// One client makes as many small calls as it may, all the time.
struct Flood : Crowd {
  explicit Flood(const PairOptions& options = many_calls()) : Crowd(2, options) { pour(); }
  void pour() {
    while (clients[0].start(at_client[0], {}) != 0) {
    }
    clients[0].flush();
  }
  /// How many turns of the server a call of the other client takes.
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
  Flood crowd;
  EXPECT_LT(crowd.turns_of({.request_bytes = 4 << 20}), 50);
  EXPECT_LT(crowd.turns_of({.request_bytes = 100'000, .response_bytes = 100'000}), 50);
  EXPECT_EQ(crowd.finish(), Violations{});
}

/// On such a device it waits until as many completions have been taken as the queue can hold.
TEST(FullQueue, KeepsNoLargeRequestOfAnotherSessionForLongWhereTheDeviceSaysNothing) {
  PairOptions options = many_calls();
  options.sim.hides_completions = true;
  Flood crowd(options);
  EXPECT_LT(crowd.turns_of({.request_bytes = 4 << 20}), 500);
  EXPECT_LT(crowd.turns_of({.request_bytes = 100'000, .response_bytes = 100'000}), 500);
  EXPECT_EQ(crowd.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

// Many sessions of two contexts use shared receives of a device. The tests make small calls on all sessions,
// with large calls beside them. Every SEND must find a receive, and nothing may be lost when sessions end.
// RDMA_RPC_SESSIONS and RDMA_RPC_CALLS set larger numbers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"

namespace rdma_rpc::session::test {
namespace {

constexpr std::uint32_t kInflight = 256;

std::uint32_t given(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// Returns the number of SENDs that found no receive, if the driver counts them.
std::uint64_t not_ready(const Side& side) {
  std::uint64_t sum = 0;
  for (const char* counter : {"send_rnr_err", "rcvd_rnr_err"}) {
    std::uint64_t count = 0;
    std::ifstream("/sys/class/infiniband/" + side.device->capabilities().name + "/ports/1/hw_counters/" +
                  counter) >>
        count;
    sum += count;
  }
  return sum;
}

class SharedReceivesOfADevice : public VerbsFaults {};

TEST_F(SharedReceivesOfADevice, CarryTheCallsOfManySessions) {
  Ends ends;
  if (ends.server.device->capabilities().max_srq_wr == 0) GTEST_SKIP() << "not run: no shared receives";
  const std::uint32_t sessions = given("RDMA_RPC_SESSIONS", 60), calls = given("RDMA_RPC_CALLS", 6000);
  const std::uint64_t before = not_ready(ends.server);
  std::vector<Link> links;
  for (std::uint32_t i = 0; i < sessions; ++i) {
    links.push_back(ends.connect(kInflight));
    ASSERT_FALSE(HasFailure()) << "at session " << i;
    ASSERT_TRUE(ends.server.session(links.back().server).receives().shares()) << "session " << i;
  }
  const std::uint64_t stride = SendSlots::stride_for(small_context().slot_bytes);
  const std::uint64_t own = sessions * std::uint64_t{kInflight + kControlReceives + kOverflowSlots} * stride;
  const std::uint64_t shared = ends.server.context->shared_receives().registered_bytes();
  EXPECT_LE(4 * shared, own);
  for (std::uint32_t made = 0, turn = 0; made < calls; ++turn) {
    // Makes most calls in bursts on a few sessions, so that grants are given and withdrawn.
    const Link& link = links[turn / 64 % 2 == 0 ? turn % sessions : turn / 64 % sessions];
    if (ends.start(link, {}) != 0) {
      ++made;
    } else {
      ends.client.flush();
      ends.step();
    }
  }
  ends.client.flush();
  ends.until([&] { return ends.ledger.open() == 0; }, "the end of all calls");
  for (std::uint32_t i = 0; i < sessions; i += 20) ends.expect_works(links[i]);
  for (const Link& link : links) EXPECT_EQ(ends.why_down(link), "");
  EXPECT_EQ(not_ready(ends.server), before) << "SENDs have found no receive";
  std::printf("%u sessions, %u calls: %llu of %llu bytes of receives registered at each end\n", sessions,
              calls, static_cast<unsigned long long>(shared), static_cast<unsigned long long>(own));
  // Half of them end with calls in progress; after that, the others have all receives.
  for (std::uint32_t i = 0; i < sessions; i += 2) {
    ends.start(links[i], {.answer = Answer::later});
    ends.client.flush();
    ends.client.session(links[i].client).close("half of them end");
  }
  const auto half_down = [&] {
    for (std::uint32_t i = 0; i < sessions; i += 2)
      if (!ends.client.is_down(links[i].client) || !ends.server.is_down(links[i].server)) return false;
    return true;
  };
  ASSERT_TRUE(ends.until(half_down, "the end of half of the sessions"));
  for (std::uint32_t i = 1; i < sessions; i += 20) ends.expect_works(links[i]);
  const SharedReceives& left = ends.server.context->shared_receives();
  EXPECT_EQ(left.posted(), left.registered_bytes() / stride);
  EXPECT_EQ(ends.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

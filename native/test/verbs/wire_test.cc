// Tests a bad wire: packets are lost, late, reordered, duplicated, or do not arrive at all. Each call must
// end exactly once, an answer must have the right bytes, a cut wire must be noticed, and a restored wire must
// work again.
#include <gtest/gtest.h>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"
#include "verbs/devices/wire.h"

namespace rdma_rpc::session::test {
namespace {

/// On soft-RoCE this number means endless. Soft-RoCE counts down with each packet that is lost. Any smaller
/// number is therefore exhausted within one message of 50 packets when every tenth packet is lost.
constexpr std::uint8_t kRetries = 7;
constexpr int kRounds = 3;

struct Bad {
  const char* name;
  const char* netem;
  Exposure exposure = Exposure::automatic;
  /// When soft-RoCE receives a duplicate of a READ whose window is gone, soft-RoCE answers by breaking the
  /// queue pair. Such a duplicate requires a packet that overtakes others.
  bool may_break = false;
};
void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

#define NEEDS_THE_WIRE() \
  if (const std::string why = why_no_wire(); !why.empty()) GTEST_SKIP() << "not run: " << why

/// Keeps every call slot busy until `total` calls have been made, then waits for the last one. Each call has
/// this limit of its own. When TCP carries the requests, each repeated loss of a packet takes twice as long
/// as the previous loss.
void make_calls(Ends& ends, const Link& link, std::size_t total,
                const std::vector<CallSpec>& specs = mixed_calls()) {
  const std::size_t before = ends.ledger.size();
  const auto made = [&] { return ends.ledger.size() - before; };
  const auto ended = [&] { return ends.ledger.size() - ends.ledger.open(); };
  const auto all_over = [&] {
    while (made() < total && !ends.client.is_down(link.client)) {
      if (ends.start(link, specs[made() % specs.size()]) == 0) break;
    }
    return ends.ledger.open() == 0 && (ends.client.is_down(link.client) || made() >= total);
  };
  for (bool over = false, came = true; !over && came;) {
    const std::size_t so_far = ended();
    came = ends.until([&] { return (over = all_over()) || ended() > so_far; }, "the end of the next call");
  }
}

class BadWire : public VerbsFaults, public testing::WithParamInterface<Bad> {};

TEST_P(BadWire, CallsGoOnAndTheirBytesAreRight) {
  NEEDS_THE_WIRE();
  const Bad& bad = GetParam();
  Ends ends(open_device(kClientEnd, kRetries), open_device(kServerEnd, kRetries), bad.exposure);
  const Link link = ends.connect();
  {
    const Weather weather(bad.netem);
    make_calls(ends, link, kRounds * mixed_calls().size());
  }
  const std::string why = ends.client.why_down(link.client);
  if (!bad.may_break) {
    EXPECT_EQ(why, "");
  }
  EXPECT_EQ(why.find("wr_flush_err"), std::string::npos) << why;
  for (std::uint64_t id = 1; id <= ends.ledger.size(); ++id) {
    const CallRecord& call = ends.call(id);
    EXPECT_TRUE(call.answered() || (why != "" && call.reason == boundary::Reason::session_lost));
  }
  ends.expect_works(why == "" ? link : ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(
    With, BadWire,
    testing::Values(Bad{"OnePercentLost", "loss 1%"}, Bad{"TenPercentLost", "loss 10%"},
                    Bad{"TenPercentLostAndSharedKeys", "loss 10%", Exposure::shared},
                    Bad{"TenPercentLostAndStaging", "loss 10%", Exposure::staging},
                    Bad{"Delay", "delay 20ms"},
                    Bad{"AnotherOrder", "delay 2ms reorder 25% 50%", Exposure::automatic, true},
                    Bad{"AnotherOrderAndSharedKeys", "delay 2ms reorder 25% 50%", Exposure::shared},
                    Bad{"Duplicates", "duplicate 10%"}),
    [](const auto& info) { return std::string(info.param.name); });

class LargeAnswers : public VerbsFaults, public testing::WithParamInterface<Bad> {};

/// This test has several hundred packets in flight at once. Soft-RoCE refused packets that it had sent itself
/// when it had to retransmit parts of long WRITEs.
TEST_P(LargeAnswers, ArriveOverABadWire) {
  NEEDS_THE_WIRE();
  Ends ends(open_device(kClientEnd, kRetries), open_device(kServerEnd, kRetries), GetParam().exposure);
  const Link link = ends.connect();
  {
    const Weather weather(GetParam().netem);
    make_calls(ends, link, 24,
               {{.response_bytes = 1 << 20, .given_reply_buffer = 1 << 20}, {.response_bytes = 600'000}});
  }
  EXPECT_EQ(ends.client.why_down(link.client), "");
  for (std::uint64_t id = 1; id <= ends.ledger.size(); ++id) EXPECT_TRUE(ends.call(id).answered());
  ends.expect_works(link);
  EXPECT_EQ(ends.finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(With, LargeAnswers,
                         testing::Values(Bad{"OnePercentLost", "loss 1%"},
                                         Bad{"OnePercentLostAndSharedKeys", "loss 1%", Exposure::shared},
                                         Bad{"AFewOvertaken", "delay 2ms reorder 98%"}),
                         [](const auto& info) { return std::string(info.param.name); });

class CutWire : public VerbsFaults {};

TEST_F(CutWire, EndsTheSessionAndWorksAgainWhenRestored) {
  NEEDS_THE_WIRE();
  if (guest_link() == "siw") {
    GTEST_SKIP()
        << "not run: a device on TCP repeats for minutes; there the sideband connection notices first";
  }
  Ends ends;
  const Link link = ends.connect();
  std::vector<std::uint64_t> under_way;
  for (const CallSpec& spec : mixed_calls()) under_way.push_back(ends.start(link, spec));
  ends.until([&] { return ends.call(under_way[0]).ended(); }, "the first of the calls");
  {
    const Weather weather("loss 100%");
    // A request has to be in flight for a device to miss the answer.
    under_way.push_back(ends.start(link, {}));
    const std::uint64_t began = real_now_ns();
    ends.until([&] { return ends.client.is_down(link.client); }, "the end of the session at the client");
    RecordProperty("noticed_after_ms", std::to_string((real_now_ns() - began) / 1'000'000));
    EXPECT_NE(ends.client.why_down(link.client).find("retry_exc_err"), std::string::npos)
        << ends.client.why_down(link.client);
    for (const std::uint64_t id : under_way) {
      if (ends.call(id).answered()) continue;
      EXPECT_EQ(ends.call(id).kind, boundary::EvKind::failed);
      EXPECT_EQ(ends.call(id).reason, boundary::Reason::session_lost);
    }
    EXPECT_FALSE(ends.call(under_way.back()).answered());
    // The runtime does the same when the sideband connection ends; the flush needs no wire.
    if (Session* server = ends.server.context->find(link.server))
      server->close("the sideband connection ended");
    ends.until([&] { return ends.server.is_down(link.server); }, "the end of the session at the server");
  }
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

TEST_F(CutWire, ANewConnectionFailsWithinItsLimit) {
  NEEDS_THE_WIRE();
  if (guest_link() == "siw") {
    GTEST_SKIP() << "not run: the attempt ends in time, but what the kernel keeps of it for over 100 s would "
                    "be counted";
  }
  Ends ends;
  ends.expect_works(ends.connect());
  {
    const Weather weather("loss 100%");
    const std::uint32_t a = ends.client.open({true, 4, 1 << 20, 1 << 20});
    const std::uint32_t b = ends.server.open({false, 4, 1 << 20, 1 << 20});
    EXPECT_EQ(ends.server.session(b).connect(ends.client.session(a).local_address()), "");
    EXPECT_EQ(ends.client.session(a).connect(ends.server.session(b).local_address()), "");
    // Addresses that are exchanged by hand connect without a packet. Therefore the first call fails.
    const std::uint64_t id = ends.client.start(a, {});
    ends.until([&] { return ends.client.is_down(a); }, "the end of the attempt");
    EXPECT_TRUE(ends.call(id).ended());
    EXPECT_FALSE(ends.call(id).answered());
    if (Session* server = ends.server.context->find(b)) server->close("the handshake took too long");
    ends.until([&] { return ends.server.is_down(b); }, "the end of the server's half");
  }
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

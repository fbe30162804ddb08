// A bad wire: packets lost, late, in another order, twice, and none at all. Each call ends exactly once, an
// answer has the right bytes, a cut wire is noticed by itself, and a mended one works again.
#include <gtest/gtest.h>

#include "verbs/census.h"
#include "verbs/ends.h"
#include "verbs/wire.h"

namespace rdma_rpc::session::test {
namespace {

constexpr std::uint8_t kRetries = 6;  // the default; for the wire that is bad but not cut
constexpr int kRounds = 6;

struct Bad {
  const char* name;
  const char* netem;
};
void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

#define NEEDS_THE_WIRE() \
  if (const std::string why = why_no_wire(); !why.empty()) GTEST_SKIP() << "not run: " << why

/// Keeps every call slot busy until `total` calls have been made, then waits for the last one.
void make_calls(Ends& ends, const Link& link, std::size_t total) {
  const std::vector<CallSpec> specs = mixed_calls();
  const std::size_t before = ends.ledger.size();
  ends.until(
      [&] {
        for (std::size_t made; (made = ends.ledger.size() - before) < total;) {
          if (ends.client.is_down(link.client) || ends.start(link, specs[made % specs.size()]) == 0) break;
        }
        return ends.ledger.open() == 0 &&
               (ends.client.is_down(link.client) || ends.ledger.size() - before >= total);
      },
      "the end of all calls");
}

class BadWire : public VerbsFaults, public testing::WithParamInterface<Bad> {};

TEST_P(BadWire, CallsGoOnAndTheirBytesAreRight) {
  NEEDS_THE_WIRE();
  Ends ends(open_device(kClientEnd, kRetries), open_device(kServerEnd, kRetries));
  const Link link = ends.connect();
  {
    const Weather weather(GetParam().netem);
    make_calls(ends, link, kRounds * mixed_calls().size());
  }
  std::size_t answered = 0;
  for (std::uint64_t id = 1; id <= ends.ledger.size(); ++id) answered += ends.call(id).answered();
  EXPECT_EQ(answered, ends.ledger.size()) << ends.client.why_down(link.client);
  EXPECT_EQ(ends.finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(With, BadWire,
                         testing::Values(Bad{"OnePercentLost", "loss 1%"},
                                         Bad{"Duplicates", "duplicate 10%"}),
                         [](const auto& info) { return std::string(info.param.name); });

class CutWire : public VerbsFaults {};

TEST_F(CutWire, ANewConnectionFailsWithinItsLimit) {
  NEEDS_THE_WIRE();
  if (guest_link() == "siw") {
    GTEST_SKIP() << "not run: the kernel's own limit, which its connect() cannot leave, is over 100 s";
  }
  Ends ends;
  ends.expect_works(ends.connect());
  {
    const Weather weather("loss 100%");
    const std::uint32_t a = ends.client.open({true, 4, 1 << 20, 1 << 20});
    const std::uint32_t b = ends.server.open({false, 4, 1 << 20, 1 << 20});
    EXPECT_EQ(ends.server.session(b).connect(ends.client.session(a).local_address()), "");
    EXPECT_EQ(ends.client.session(a).connect(ends.server.session(b).local_address()), "");
    // Addresses exchanged by hand connect without a packet: then it is the first call that fails.
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

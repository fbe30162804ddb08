// The link of a port goes down, as when a cable is pulled or a switch restarts, and comes up again. The
// sessions on the port end by themselves, are closed, or survive. New sessions work afterwards.
#include <gtest/gtest.h>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"
#include "verbs/devices/wire.h"

namespace rdma_rpc::session::test {
namespace {

/// On soft-RoCE a retry count of 7 means that retries never end.
constexpr std::uint8_t kRetries = 7;

/// The network interface of either end's device.
class LinkDown : public VerbsFaults, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_wire(); !why.empty()) GTEST_SKIP() << "not run: " << why;
  }
  static bool at_client() { return GetParam() == std::string("v0"); }
  static bool is_tcp() { return guest_link() == "siw"; }
};

/// Ends a session, as the runtime does when the sideband connection ends.
void close(Side& side, std::uint32_t session) {
  if (Session* open = side.context->find(session)) open->close("the sideband connection ended");
}

TEST_P(LinkDown, EndsTheSessionsWithTheirCallsAndNewOnesWorkAfterwards) {
  Ends ends;
  const Link link = ends.connect();
  ends.expect_works(link);
  {
    const Unplugged unplugged(GetParam());
    std::vector<std::uint64_t> under_way;
    for (const CallSpec& spec : mixed_calls()) under_way.push_back(ends.start(link, spec));
    if (is_tcp()) close(ends.client, link.client);
    ends.until([&] { return ends.client.is_down(link.client); }, "the end of the session at the client");
    const std::string why = ends.client.why_down(link.client);
    EXPECT_TRUE(is_tcp() || why.find("DOWN, not ACTIVE: is its link up") != std::string::npos) << why;
    for (const std::uint64_t id : under_way) {
      EXPECT_EQ(ends.call(id).kind, boundary::EvKind::failed);
      EXPECT_EQ(ends.call(id).reason, boundary::Reason::session_lost);
    }
    close(ends.server, link.server);
    ends.until([&] { return ends.server.is_down(link.server); }, "the end of the session at the server");
  }
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

TEST_P(LinkDown, ASessionWithoutTrafficDoesNotNotice) {
  if (is_tcp()) GTEST_SKIP() << "not run: soft-iWARP closes its connections when a link goes down";
  Ends ends;
  const Link link = ends.connect();
  ends.expect_works(link);
  drive_to_rest({&ends.client, &ends.server});
  { const Unplugged unplugged(GetParam()); }
  ends.expect_works(link);
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

TEST_P(LinkDown, AnAttemptToConnectFailsWithinItsLimit) {
  if (is_tcp())
    GTEST_SKIP() << "not run: the attempt ends in time, but what the kernel keeps of it for over 100 s would "
                    "be counted";
  // A program that uses only librdmacm fails in the same way, until both links are deleted and added again.
  if (guest_link() == "rxe" && !at_client() && guest_linux() >= std::pair{6, 12})
    GTEST_SKIP() << "not run: after an attempt while the server's link is down soft-RoCE of Linux 6.12 "
                    "brings no request to connect any more";
  Ends ends;
  ends.expect_works(ends.connect());
  {
    const Unplugged unplugged(GetParam());
    const std::uint32_t a = ends.client.open({true, 4, 1 << 20, 1 << 20});
    const std::uint32_t b = ends.server.open({false, 4, 1 << 20, 1 << 20});
    EXPECT_EQ(ends.server.session(b).connect(ends.client.session(a).local_address()), "");
    if (ends.client.session(a).connect(ends.server.session(b).local_address()) != "")
      close(ends.client, a);  // this side noticed the end at once
    ends.until([&] { return ends.client.is_down(a); }, "the end of the attempt");
    close(ends.server, b);
    ends.until([&] { return ends.server.is_down(b); }, "the end of the server's half");
  }
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

TEST_P(LinkDown, ADeviceOpenedMeanwhileReportsIt) {
  const Unplugged unplugged(GetParam());
  const fabric::VerbsOptions options = options_of(at_client() ? kClientEnd : kServerEnd);
  std::string error;
  EXPECT_EQ(fabric::open_verbs_device(options, &error), nullptr);
  EXPECT_NE(error.find(options.device + " port 1 is DOWN, not ACTIVE"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(At, LinkDown, testing::Values("v0", "v1"), [](const auto& info) {
  return info.param == std::string("v0") ? "TheClient" : "TheServer";
});

class ShortLinkDown : public LinkDown {};

/// Packets that the client has sent in the meantime are retransmitted. (The sender's own port must be up,
/// because soft-RoCE fails a request whose packet it cannot send.)
TEST_P(ShortLinkDown, IsRiddenOutByCallsUnderWay) {
  if (is_tcp()) GTEST_SKIP() << "not run: soft-iWARP closes its connections when a link goes down";
  // A program that uses only librdmacm has the same failure: rxe0 counts one `send_err` and no retry. On
  // Linux 6.1 the packet counts as lost.
  if (guest_link() == "rxe" && guest_linux() >= std::pair{6, 12})
    GTEST_SKIP() << "not run: soft-RoCE of Linux 6.12 ends a queue pair at the first packet that its "
                    "interface drops, as one does whose peer has its link down";
  Ends ends(open_device(kClientEnd, kRetries), open_device(kServerEnd, kRetries));
  const Link link = ends.connect();
  ends.expect_works(link);
  std::vector<std::uint64_t> under_way;
  {
    const Unplugged unplugged(GetParam());
    for (const CallSpec& spec : mixed_calls()) under_way.push_back(ends.start(link, spec));
    ends.client.flush();
  }
  for (const std::uint64_t id : under_way) {
    ends.until([&] { return ends.call(id).ended(); }, "the end of a call");
    EXPECT_TRUE(ends.call(id).answered()) << ends.client.why_down(link.client);
  }
  EXPECT_EQ(ends.finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(At, ShortLinkDown, testing::Values("v1"), [](const auto&) { return "TheServer"; });

}  // namespace
}  // namespace rdma_rpc::session::test

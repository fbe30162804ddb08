// An administrator changes the MTU of the wire while a program keeps its devices open. Existing sessions may
// end, because their packets are then too long. Sessions that are made afterwards work.
#include <gtest/gtest.h>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"
#include "verbs/devices/wire.h"

namespace rdma_rpc::session::test {
namespace {

/// Sets the MTU of both ends; the destructor sets 9000 again.
class WireMtu {
 public:
  explicit WireMtu(const std::string& mtu) { both(mtu); }
  ~WireMtu() { both("9000"); }
  WireMtu(const WireMtu&) = delete;
  WireMtu& operator=(const WireMtu&) = delete;

 private:
  static void both(const std::string& mtu) {
    for (const char* end : {"v0", "v1"}) shell(std::string("ip link set ") + end + " mtu " + mtu);
  }
};

class Mtu : public VerbsFaults {
 protected:
  void SetUp() override {
    if (guest_link() != "rxe")
      GTEST_SKIP() << "not run: needs the guest's wire, and packets that are not TCP's";
  }
};

TEST_F(Mtu, OfTheWireIsFollowedByLaterSessions) {
  Ends ends;
  const Link before = ends.connect();
  ends.expect_works(before);
  {
    const WireMtu small("1500");
    ends.expect_works(ends.connect());
  }
  ends.expect_works(ends.connect());
  // This session was idle while the MTU was smaller.
  ends.expect_works(before);
  EXPECT_EQ(ends.finish(), Violations{});
}

/// Soft-RoCE tries for ever to send a packet that is too long for its interface, and reports nothing.
TEST_F(Mtu, ThatIsTooSmallForASessionIsTheReasonOfItsEnd) {
  Ends ends;
  const Link link = ends.connect();
  ends.expect_works(link);
  {
    const WireMtu small("1500");
    // The server answers with a WRITE of many packets.
    ends.start(link, {.response_bytes = 50'000, .given_reply_buffer = 60'000});
    ends.until([&] { return ends.server.is_down(link.server) && ends.client.is_down(link.client); },
               "the end of the session");
    const std::string why = ends.server.why_down(link.server);
    EXPECT_NE(why.find("the MTU of its network interface has become smaller"), std::string::npos) << why;
    ends.expect_works(ends.connect());
  }
  EXPECT_EQ(ends.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

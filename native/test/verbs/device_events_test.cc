// Tests the events that a device reports by itself: its removal, and the peer's disconnect. Sessions notice
// the events whether their process sleeps or polls. The sessions end with the reason of the event, and a new
// session works.
#include <gtest/gtest.h>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"
#include "verbs/devices/wire.h"

namespace rdma_rpc::session::test {
namespace {

class DeviceEvents : public VerbsFaults {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_wire(); !why.empty()) GTEST_SKIP() << "not run: " << why;
  }
};

/// Removes a device of the guest. The kernel waits for the processes that have it open.
class Removal {
 public:
  explicit Removal(std::string device) : device_(std::move(device)) {
    shell("setsid rdma link delete " + device_ + " >/dev/null 2>&1 &");
  }
  ~Removal() {
    // A new device is refused until the old one is gone.
    const std::string add =
        "rdma link add " + device_ + " type " + guest_link() + " netdev v" + device_.back();
    shell("for n in $(seq 600); do " + add + " 2>/dev/null && exit; sleep 0.05; done; " + add);
  }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

 private:
  std::string device_;
};

TEST_F(DeviceEvents, ARemovedDeviceEndsItsSessionsAndAddedAgainItWorks) {
  {
    std::unique_ptr<Removal> removal;  // the removal ends when all of these objects are closed
    Ends ends;
    const Link link = ends.connect();
    std::vector<std::uint64_t> under_way;
    for (const CallSpec& spec : mixed_calls()) under_way.push_back(ends.start(link, spec));
    ends.until([&] { return ends.call(under_way[0]).ended(); }, "the first of the calls");
    removal = std::make_unique<Removal>(options_of(kServerEnd).device);
    under_way.push_back(ends.start(link, {}));
    ends.until([&] { return ends.server.is_down(link.server); }, "the end of the session on the device");
    EXPECT_NE(ends.server.why_down(link.server).find("was removed"), std::string::npos)
        << ends.server.why_down(link.server);
    ends.until([&] { return ends.client.is_down(link.client); }, "the end of the session at the client");
    for (const std::uint64_t id : under_way) EXPECT_TRUE(ends.call(id).ended());
    EXPECT_EQ(ends.finish(), Violations{});
  }
  Ends ends;
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

/// A removed device leaves two useless descriptors behind, until librdmacm opens another device.
TEST_F(DeviceEvents, TwentyRemovalsLeaveNoMoreDescriptorsThanOne) {
  const std::string device = options_of(kServerEnd).device;
  std::size_t left = 0;
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    std::unique_ptr<Removal> removal;
    {
      Ends ends;
      const Link link = ends.connect();
      EXPECT_TRUE(ends.complete(link, {}).answered());
      // The test does this first with a session on the device, and then when the device is no longer used.
      if (round % 2 == 0) {
        removal = std::make_unique<Removal>(device);
        ends.until([&] { return ends.server.is_down(link.server); }, "the end of the session on the device");
      }
      EXPECT_EQ(ends.finish(), Violations{});
    }
    if (removal == nullptr) removal = std::make_unique<Removal>(device);
    removal.reset();
    const std::size_t nowhere = descriptors()["/dev/null"];
    if (round == 0) left = nowhere;
    EXPECT_LE(nowhere, left) << "in round " << round;
  }
  // The census keeps the device open, like any process that has used it.
  Ends ends;
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

/// The process checks no descriptor: it only polls an empty queue.
TEST_F(DeviceEvents, APollingSideNoticesThatThePeerHasClosedTheConnection) {
  Ends ends;
  const Link link = ends.connect();
  ends.expect_works(link);
  ends.client.session(link.client).close("the test says so");
  const std::uint64_t limit = real_now_ns() + 30'000'000'000;
  while (!ends.server.is_down(link.server) && real_now_ns() < limit) {
    ends.client.turn(real_now_ns());
    ends.server.turn(real_now_ns());
  }
  // On iWARP the end of the queue pair may be noticed first. The reason may then only be that the peer has
  // closed the connection.
  const std::string why = ends.server.why_down(link.server);
  EXPECT_NE(why.find("closed the connection"), std::string::npos) << why;
  EXPECT_EQ(ends.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test

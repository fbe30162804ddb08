// Drivers report features that do not work. The features are tested when a device is opened, so that sessions
// never rely on a broken one.
#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

using fabric::Capabilities;

class Trial : public testing::Test {
 protected:
  Capabilities of(const Profile& profile) {
    Nic& nic = machine_.add(profile);
    const auto device = open(nic);
    if (device == nullptr) return {};
    EXPECT_EQ(nic.live.windows + nic.live.queue_pairs, 0u) << "left behind by the trial";
    const Connected pair(*device, *device);
    EXPECT_EQ(pair.error, "");
    return device->capabilities();
  }
  Machine machine_;
};

TEST_F(Trial, KeepsWhatWorks) {
  const Capabilities can = of(capable());
  EXPECT_TRUE(can.windows) << can.why_not(fabric::Feature::windows);
  EXPECT_EQ(can.max_inline, 256u);
}

TEST_F(Trial, WindowsThatCannotBeBoundAreNotUsed) {
  Profile profile = capable();
  profile.binds_windows = false;
  const Capabilities can = of(profile);
  EXPECT_FALSE(can.windows);
  EXPECT_EQ(
      can.why_not(fabric::Feature::windows),
      "nic0 has no memory windows of type 2 and SEND with invalidate: its memory windows do not work: a "
      "bind fails: memory management operation error");
  EXPECT_EQ(can.max_inline, 256u);
  ASSERT_EQ(can.notes.size(), 1u);
  EXPECT_EQ(can.notes[0].find("Its memory windows do not work: a bind fails"), 0u) << can.notes[0];
}

TEST_F(Trial, WindowsThatCannotBeAllocatedAreNotUsed) {
  Profile profile = capable();
  profile.allocates_windows = false;
  EXPECT_FALSE(of(profile).windows);
}

/// The sizes include that of irdma (101) and both ends of the search.
TEST_F(Trial, FindsTheLargestInlineSize) {
  for (const std::uint32_t bytes : {0u, 1u, 32u, 101u, 255u, 511u, 512u}) {
    Profile profile = named("inline" + std::to_string(bytes));
    profile.inline_max = bytes;
    EXPECT_EQ(of(profile).max_inline, bytes);
  }
}

TEST_F(Trial, AnInlineFlagThatIsIgnoredIsNotUsed) {
  Profile profile = capable();
  profile.copies_inline = false;
  const Capabilities can = of(profile);
  EXPECT_EQ(can.max_inline, 0u);
  EXPECT_TRUE(can.windows) << can.why_not(fabric::Feature::windows);
}

TEST_F(Trial, ADeviceThatCannotReachItselfIsTakenAtItsWord) {
  Profile profile = capable();
  profile.binds_windows = false;
  Nic& nic = machine_.add(profile);
  nic.refuses_rtr = EHOSTUNREACH;
  const auto device = open(nic);
  ASSERT_NE(device, nullptr);
  EXPECT_TRUE(device->capabilities().windows);
  ASSERT_EQ(device->capabilities().notes.size(), 1u);
  EXPECT_EQ(
      device->capabilities().notes[0],
      "Its windows and inline data could not be tried: it cannot be connected to itself: No route to host.");
}

}  // namespace
}  // namespace rdma_rpc::nic

// Tests that NICs that cannot carry sessions are refused when they are opened. The error gives the reason and
// names the type of queue pair that such a NIC has instead.
#include "nic/device/profiles.h"
#include "nic/open.h"
#include "session/session.h"

namespace rdma_rpc::nic {
namespace {

std::string why_refused(const Profile& profile) {
  Machine machine;
  std::string error;
  EXPECT_EQ(try_open(machine.add(profile), &error), nullptr);
  return error;
}

TEST(NicWithoutReliableConnections, IsRefusedByName) {
  const std::string why_efa = why_refused(efa());
  EXPECT_NE(why_efa.find("efa has no reliable connections (RC)"), std::string::npos) << why_efa;
  EXPECT_NE(why_efa.find("SRD"), std::string::npos) << why_efa;
  const std::string why_apple = why_refused(apple());
  EXPECT_NE(why_apple.find("rdma_en2 has no reliable connections (RC)"), std::string::npos) << why_apple;
}

/// The library of MANA accepts the flag of inline data and ignores it. The device can therefore be opened,
/// but carries no session.
TEST(NicWithoutInlineData, CarriesNoSession) {
  Machine machine;
  const auto device = open(machine.add(profile_named("mana")));
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(session::Session::why_unfit(device->capabilities(), false),
            "it sends 0 bytes inline (max_inline_data), and 32 are needed");
}

TEST(NicOfIwarp, IsRefusedWithoutRdmaCm) {
  for (const Profile& profile : {siw(), erdma_iwarp()}) {
    const std::string why = why_refused(profile);
    EXPECT_NE(why.find(profile.name + " can be connected by rdma_cm only (it is an iWARP device)"),
              std::string::npos)
        << why;
  }
}

}  // namespace
}  // namespace rdma_rpc::nic

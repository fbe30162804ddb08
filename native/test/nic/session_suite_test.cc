// Runs the session suite on the NICs that differ most: with windows, without windows, and with few READs for
// the whole device. The last one is left out with sanitizers, because it only changes numbers. The other NICs
// carry a call of each kind. Peers notice the end of a queue pair, as with rdma_cm. Without rdma_cm, the end
// of the sideband connection would tell them.
#include "nic/device/profiles.h"
#include "nic/open.h"
#include "session/suite/device_suite.h"

namespace rdma_rpc::session::test {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr const char* kNames[] = {"mlx5", "bnxt_re"};
#else
constexpr const char* kNames[] = {"mlx5", "bnxt_re", "ionic"};
#endif

/// Opens one of the two NICs of a test.
std::shared_ptr<fabric::Device> opened(const nic::Profile& profile, std::size_t which) {
  static std::unique_ptr<nic::Machine> machine;
  if (which == kClientEnd) machine = std::make_unique<nic::Machine>();
  nic::Profile own = nic::named("nic" + std::to_string(which), profile);
  own.peers_notice = true;
  return nic::open(machine->add(own));
}

std::vector<DevicesInMode> modes() {
  std::vector<DevicesInMode> all;
  for (const char* name : kNames) {
    const nic::Profile profile = nic::profile_named(name);
    for (const DevicesInMode& mode :
         in_every_mode([profile](std::size_t end) { return opened(profile, end); }))
      all.push_back(mode);
  }
  return all;
}

/// Returns the NICs that can carry sessions. MANA is left out, because its library ignores inline data.
std::vector<nic::Profile> kinds() {
  std::vector<nic::Profile> all = nic::connectable();
  std::erase_if(all, [](const nic::Profile& profile) { return !profile.copies_inline; });
  return all;
}

class OneOfEachKind : public testing::TestWithParam<nic::Profile> {};

TEST_P(OneOfEachKind, IsCarriedAndLeavesNothingBehind) {
  nic::Machine machine;
  nic::Nic* nics[2] = {&machine.add(nic::named("nic0", GetParam())),
                       &machine.add(nic::named("nic1", GetParam()))};
  {
    Ends ends(nic::open(*nics[0]), nic::open(*nics[1]));
    for (int i = 0; i < 2; ++i) ends.expect_works(ends.connect());
    EXPECT_EQ(ends.finish(), Violations{});
  }
  for (const nic::Nic* each : nics) {
    EXPECT_EQ(each->misuse, std::vector<std::string>{});
    EXPECT_EQ(each->live.queue_pairs + each->live.regions + each->live.windows, 0u);
  }
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nic, DeviceSession, testing::ValuesIn(modes()),
                         [](const testing::TestParamInfo<DevicesInMode>& info) {
                           return std::string(kNames[info.index / 3]) + "_" + to_string(info.param.exposure);
                         });

INSTANTIATE_TEST_SUITE_P(Nic, OneOfEachKind, testing::ValuesIn(kinds()),
                         [](const testing::TestParamInfo<nic::Profile>& info) { return info.param.name; });

}  // namespace rdma_rpc::session::test

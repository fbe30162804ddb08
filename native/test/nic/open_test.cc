// Tests the choice of the device by a list or a pattern, with devices that cannot be used. Features are
// tested only on the chosen device.
#include "nic/open.h"
#include "nic/device/host.h"

namespace rdma_rpc::nic {
namespace {

class WhichDevice : public testing::Test {
 protected:
  WhichDevice() {
    for (const char* name : {"mgmt0", "rail0", "rail1", "other"}) machine_.add(named(name));
  }
  static std::string opened(const std::string& wanted) {
    fabric::VerbsOptions options;
    options.device = wanted;
    std::string error;
    const auto device = fabric::open_verbs_device(options, &error);
    return device == nullptr ? error : device->capabilities().name;
  }
  Machine machine_;
};

TEST_F(WhichDevice, MayBeAPatternOrAList) {
  EXPECT_EQ(opened(""), "mgmt0");
  EXPECT_EQ(opened("rail1"), "rail1");
  EXPECT_EQ(opened("rail*"), "rail0");
  EXPECT_EQ(opened("nothing,rail1,other"), "rail1");
  EXPECT_EQ(opened("oth?r,absent*"), "other");
  EXPECT_NE(opened("rail").find("there is no RDMA device 'rail' (option device); there is: mgmt0"),
            std::string::npos);
  EXPECT_NE(opened(",").find("there is no RDMA device"), std::string::npos);
}

TEST_F(WhichDevice, IsTheFirstThatCanBeUsed) {
  machine_.nics()[1]->port.state = IBV_PORT_DOWN;
  EXPECT_EQ(opened("rail*"), "rail1");
  machine_.nics()[2]->profile.attributes.max_qp = 0;
  EXPECT_NE(opened("rail*").find("rail1 cannot create a queue pair"), std::string::npos) << opened("rail*");
}

TEST_F(WhichDevice, OthersGetNoCommand) {
  EXPECT_EQ(opened("rail*"), "rail0");
  EXPECT_GT(machine_.nics()[1]->made.size(), 0u);
  for (const std::size_t i : {0u, 2u, 3u}) EXPECT_EQ(machine_.nics()[i]->commands, 0u) << i;
}

/// To find out which device has an address, the ports are read, and no object is made.
TEST_F(WhichDevice, ThatHasTheAddressIsTheOnlyOneThatIsTriedOut) {
  Host host;
  for (unsigned i = 0; i < 4; ++i) {
    const std::string ip = "10.0." + std::to_string(i) + ".1", interface = "rail" + std::to_string(i);
    host.addresses.push_back({interface, ip, i + 1});
    machine_.nics()[i]->set_gid(1, ip, i + 1);
  }
  fabric::VerbsOptions options;
  options.address = "10.0.2.1";
  std::string error;
  const auto device = fabric::open_verbs_device(options, &error);
  ASSERT_NE(device, nullptr) << error;
  EXPECT_EQ(device->capabilities().name, "rail1");
  EXPECT_EQ(machine_.nics()[0]->made.size(), 0u);
  EXPECT_EQ(machine_.nics()[3]->commands, 0u);
}

/// A search for any device ends with the first one that can be used; ports are listed nevertheless.
TEST_F(WhichDevice, IsFoundWithoutTryingOutAll) {
  machine_.nics()[1]->profile.attributes.max_qp = 0;
  const fabric::VerbsReport report =
      fabric::list_verbs_devices({.device = "rail*,other", .needed_bytes = 4096, .enough = 1});
  ASSERT_EQ(report.devices.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(report.devices[i].ports.size(), 1u) << i;
    EXPECT_EQ(report.devices[i].capabilities.name.empty(), i != 2) << i;
    EXPECT_EQ(report.devices[i].why_not.empty(), i != 1) << i;
  }
}

}  // namespace
}  // namespace rdma_rpc::nic

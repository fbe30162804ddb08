// The choice of the device by a list or a pattern, with devices that cannot be used. Features are tested only
// on the chosen device.
#include "nic/open.h"

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

TEST_F(WhichDevice, OthersAreNotTriedOut) {
  EXPECT_EQ(opened(""), "mgmt0");
  EXPECT_GT(machine_.nics()[0]->made.size(), 0u);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(machine_.nics()[i]->made.size(), 0u) << i;
}

}  // namespace
}  // namespace rdma_rpc::nic

// Tests a device that several network namespaces share. The table of the device has the GIDs of all
// namespaces, with interface indices that are valid only in the namespace of each GID.
#include "nic/device/host.h"
#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

class SharedDevice : public testing::Test {
 protected:
  SharedDevice() {
    host_.addresses = {{"mgmt0", "192.168.7.2", 2}, {"eth0", "10.0.0.9", 3}};
    nic_.set_gid(1, "10.1.1.1", 3);  // of another namespace, in which 3 is the index of another interface
    nic_.set_gid(2, "10.0.0.9", 5);
    nic_.set_gid(3, "10.1.1.2", 2);
  }
  std::string path(const std::string& address) {
    fabric::VerbsOptions options;
    options.address = address;
    const auto device = open(nic_, options);
    return device == nullptr ? "" : device->capabilities().path;
  }

  Host host_;
  Machine machine_;
  Nic& nic_ = machine_.add(capable());
};

TEST_F(SharedDevice, UsesAnAddressOfThisNamespace) {
  EXPECT_NE(path("").find("GID 10.0.0.9"), std::string::npos) << path("");
  EXPECT_NE(path("10.0.0.9").find("GID 10.0.0.9"), std::string::npos);
}

/// The management interface has the same index as an interface in another namespace.
TEST_F(SharedDevice, DoesNotBelongToAnInterfaceOfTheSameNumber) {
  Nic& other = machine_.add(named("nic1"));
  other.set_gid(1, "192.168.7.2", 2);
  fabric::VerbsOptions options;
  options.address = "192.168.7.2";
  std::string error;
  const auto device = fabric::open_verbs_device(options, &error);
  ASSERT_NE(device, nullptr) << error;
  EXPECT_EQ(device->capabilities().name, "nic1");
}

TEST_F(SharedDevice, UsesAForeignAddressWhereItHasNoOther) {
  nic_.set_gid(2, "");
  EXPECT_NE(path("").find("GID 10.1.1.1"), std::string::npos) << path("");
}

}  // namespace
}  // namespace rdma_rpc::nic

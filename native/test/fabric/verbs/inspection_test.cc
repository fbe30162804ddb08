// Tests the data about real RDMA devices that the plug-in returns for people: attributes, ports and P_Keys;
// and the watch on their events.
#include <gtest/gtest.h>

#include <algorithm>

#include "fabric/verbs/devices.h"
#include "fabric/verbs_inspection.h"

namespace rdma_rpc::fabric::test {
namespace {

std::string device_name() { return test_options(0, VerbsConnect::automatic).device; }

std::string value(const std::vector<VerbsAttribute>& attributes, const std::string& name) {
  const auto found = std::ranges::find(attributes, name, &VerbsAttribute::name);
  return found == attributes.end() ? "missing" : found->value;
}

TEST(VerbsInspection, ADeviceHasAllItsAttributesAndThoseOfItsPorts) {
  const std::vector<VerbsDetails> all = describe_verbs_devices();
  const auto found = std::ranges::find(all, device_name(), &VerbsDetails::name);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->why_not, "");
  EXPECT_EQ(value(found->attributes, "node_guid").size(), std::string("0000:0000:0000:0000").size());
  EXPECT_GT(std::stoi(value(found->attributes, "max_qp")), 0);
  EXPECT_GT(std::stoi(value(found->attributes, "max_cqe")), 0);
  EXPECT_TRUE(value(found->attributes, "atomic_cap").starts_with("ATOMIC_"));
  EXPECT_FALSE(found->flags.empty());
  ASSERT_FALSE(found->ports.empty());
  EXPECT_EQ(found->ports[0].number, 1u);
  EXPECT_EQ(value(found->ports[0].attributes, "state"), "ACTIVE");
  EXPECT_EQ(value(found->ports[0].attributes, "link_layer"), "Ethernet");
  EXPECT_GE(std::stoi(value(found->ports[0].attributes, "active_mtu")), 256);
}

TEST(VerbsInspection, AWatchDoesNotWaitForEvents) {
  std::string error;
  const std::unique_ptr<VerbsWatch> watch = watch_verbs_device(device_name(), &error);
  ASSERT_NE(watch, nullptr) << error;
  VerbsEvent event;
  // A device may have events of its own. Each event is taken once.
  for (int i = 0; i < 100 && watch->take(&event); ++i) EXPECT_TRUE(event.name.starts_with("IBV_EVENT_"));
  EXPECT_FALSE(watch->take(&event));
}

TEST(VerbsInspection, AMissingDeviceIsRefusedWithTheAvailableOnes) {
  std::string error;
  EXPECT_EQ(watch_verbs_device("no_such_device", &error), nullptr);
  EXPECT_NE(error.find("'no_such_device'; there is: "), std::string::npos) << error;
}

}  // namespace
}  // namespace rdma_rpc::fabric::test

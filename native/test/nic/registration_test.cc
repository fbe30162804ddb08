// Tests the registration of memory: the order in which a device may write to it, and registrations that fail.
#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

constexpr std::uint32_t kWritable =
    fabric::access_local_write | fabric::access_remote_write | fabric::access_remote_read;

class Registered : public testing::Test {
 protected:
  /// Registers a page, and returns the flags of each call of the library that this made.
  std::vector<unsigned> flags(bool relaxed, std::uint32_t access) {
    fabric::VerbsOptions options;
    options.relaxed_ordering = relaxed;
    const auto device = open(nic_, options);
    const auto memory = device->alloc_memory(4096, "test");
    nic_.registered.clear();
    std::string error;
    EXPECT_NE(device->reg_mr(memory->data(), 4096, access, &error), nullptr) << error;
    return nic_.registered;
  }

  Machine machine_;
  Nic& nic_ = machine_.add(capable());
};

TEST_F(Registered, InOrderUnlessTheUserReadsAfterCompletionsOnly) {
  EXPECT_EQ(flags(false, kWritable), (std::vector<unsigned>{kWritable}));
  EXPECT_EQ(flags(true, kWritable), (std::vector<unsigned>{kWritable | IBV_ACCESS_RELAXED_ORDERING}));
}

TEST_F(Registered, ForAtomicsInOrder) {
  constexpr std::uint32_t access = kWritable | fabric::access_remote_atomic;
  EXPECT_EQ(flags(true, access), (std::vector<unsigned>{access}));
}

TEST_F(Registered, InOrderWhereTheDriverRefusesOptionalFlags) {
  nic_.profile.takes_relaxed_ordering = false;
  EXPECT_EQ(flags(true, kWritable),
            (std::vector<unsigned>{kWritable | IBV_ACCESS_RELAXED_ORDERING, kWritable}));
}

/// A second attempt without the optional flag must not hide the reason why memory cannot be registered.
TEST_F(Registered, ALimitIsNotTriedTwice) {
  fabric::VerbsOptions options;
  options.relaxed_ordering = true;
  const auto device = open(nic_, options);
  const auto memory = device->alloc_memory(4096, "test");
  nic_.registered.clear();
  nic_.registration_errors = {ENOMEM};
  std::string error;
  EXPECT_EQ(device->reg_mr(memory->data(), 4096, kWritable, &error), nullptr);
  EXPECT_EQ(nic_.registered.size(), 1u);
}

/// Drivers return EINVAL, which gives no reason. No region of a session is larger than a message.
TEST_F(Registered, BeyondTheLargestRegionIsNamed) {
  nic_.profile.attributes.max_mr_size = 8192;
  const auto device = open(nic_);
  const auto memory = device->alloc_memory(3 * 4096, "test");
  std::string error;
  EXPECT_NE(device->reg_mr(memory->data(), 8192, kWritable, &error), nullptr) << error;
  EXPECT_EQ(device->reg_mr(memory->data(), 8193, kWritable, &error), nullptr);
  EXPECT_NE(error.find("cannot register 8193 bytes on nic0: a region may have at most 8192 (max_mr_size)"),
            std::string::npos)
      << error;
}

/// A device refuses to deregister memory to which a window is bound.
TEST(Region, ThatGoesFirstTakesItsWindowsAlong) {
  Machine machine;
  Nic& nic = machine.add(capable());
  const auto device = open(nic);
  const Connected pair(*device, *device);
  ASSERT_EQ(pair.error, "");
  const auto memory = device->alloc_memory(4096, "test");
  std::string error;
  auto region = device->reg_mr(memory->data(), 4096, kWritable | fabric::access_mw_bind, &error);
  const auto window = device->alloc_mw();
  fabric::SendWr bind;
  bind.opcode = fabric::Opcode::bind_mw;
  bind.bind = {window.get(), region.get(), region->addr(), 4096, fabric::access_remote_read};
  ASSERT_EQ(pair.client->post_send({&bind, 1}), 1u);
  region.reset();
  EXPECT_EQ(nic.misuse, std::vector<std::string>{});
}

TEST(Partition, IsTheOneOfTheOption) {
  Machine machine;
  Nic& nic = machine.add(capable());
  std::vector<int> indices;
  nic.told = [&](const ibv_qp_attr& attr, int mask) {
    if ((mask & IBV_QP_PKEY_INDEX) != 0) indices.push_back(attr.pkey_index);
  };
  fabric::VerbsOptions options;
  options.pkey_index = 1;
  const auto device = open(nic, options);
  EXPECT_EQ(Connected(*device, *device).error, "");
  EXPECT_EQ(indices, (std::vector<int>(indices.size(), 1)));
  EXPECT_GE(indices.size(), 2u);
}

TEST(Partition, ThatThePortDoesNotHaveIsNamed) {
  Machine machine;
  fabric::VerbsOptions options;
  options.pkey_index = 7;
  const auto device = open(machine.add(capable()), options);
  const std::string error = Connected(*device, *device).error;
  EXPECT_NE(error.find("with P_Key index 7 (option pkeyIndex): Invalid argument"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace rdma_rpc::nic

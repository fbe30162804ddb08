// Tests resources that all queue pairs of a device share, and the errors when they are used up.
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

class Budget : public testing::Test {
 protected:
  void open_with(const Profile& profile) {
    nic_ = &machine_.add(named("nic0", profile));
    device_ = open(*nic_);
  }
  /// Each pair has both of its queue pairs on the device.
  Connected& another() { return pairs_.emplace_back(*device_, *device_); }

  Machine machine_;
  Nic* nic_ = nullptr;
  std::unique_ptr<fabric::Device> device_;
  std::deque<Connected> pairs_;
};

/// The whole device serves 16 READs at once, as Pensando's device does.
TEST_F(Budget, OfReadsIsSharedByAllQueuePairs) {
  Profile profile = capable();
  profile.attributes.max_res_rd_atom = 16;
  open_with(profile);
  ASSERT_EQ(device_->capabilities().notes.size(), 1u);
  EXPECT_EQ(
      device_->capabilities().notes[0],
      "It serves 16 READs of peers at once for all connections of all processes (max_res_rd_atom), so a "
      "connection gets 4 or less.");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(another().error, "") << i;
  EXPECT_LE(nic_->reads_reserved, 16);
  pairs_.clear();
  EXPECT_EQ(nic_->reads_reserved, 0);
  EXPECT_EQ(another().error, "");
}

TEST_F(Budget, OfReadsIsGivenBack) {
  std::vector<int> served;
  Profile profile = capable();
  profile.attributes.max_res_rd_atom = 16;
  open_with(profile);
  nic_->told = [&](const ibv_qp_attr& attr, int mask) {
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) served.push_back(attr.max_dest_rd_atomic);
  };
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(another().error, "") << i;
    pairs_.clear();
  }
  ASSERT_EQ(served.size(), 16u);
  // Either end of a pair may be the first to take its share.
  for (std::size_t i = 2; i < served.size(); i += 2) {
    EXPECT_EQ(std::minmax(served[i], served[i + 1]), std::minmax(served[0], served[1])) << i;
  }
}

TEST_F(Budget, OfReadsIsNotDividedWhereItIsLarge) {
  std::vector<int> served;
  open_with(capable());
  nic_->told = [&](const ibv_qp_attr& attr, int mask) {
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) served.push_back(attr.max_dest_rd_atomic);
  };
  EXPECT_EQ(another().error, "");
  EXPECT_EQ(served, (std::vector<int>{16, 16}));
}

TEST_F(Budget, OfReadsThatIsUsedUpIsNamed) {
  Profile profile = capable();
  profile.attributes.max_res_rd_atom = 2;
  open_with(profile);
  EXPECT_EQ(another().error, "");
  const std::string error = another().error;
  EXPECT_NE(error.find("no more resources for READs of peers (max_res_rd_atom)"), std::string::npos) << error;
}

TEST_F(Budget, OfQueuePairsIsNamed) {
  Profile profile = capable();
  profile.attributes.max_qp = 4;
  open_with(profile);
  EXPECT_EQ(another().error, "");
  EXPECT_EQ(another().error, "");
  const std::string error = another().error;
  EXPECT_NE(error.find("this process has 4 of the 4 that the device allows all processes together (max_qp)"),
            std::string::npos)
      << error;
}

TEST_F(Budget, OfRegionsIsNamed) {
  Profile profile = capable();
  profile.attributes.max_mr = 2;
  open_with(profile);
  const auto memory = device_->alloc_memory(4096, "test");
  std::deque<std::unique_ptr<fabric::MemoryRegion>> regions;
  std::string error;
  do {
    regions.push_back(device_->reg_mr(memory->data(), 4096, fabric::access_local_write, &error));
  } while (regions.back() != nullptr);
  EXPECT_EQ(regions.size(), 3u);
  EXPECT_NE(error.find("this process has 2 of the 2 that the device allows all processes together (max_mr)"),
            std::string::npos)
      << error;
}

/// The driver of this device reports shared receives but cannot make enough of them.
TEST(SharedReceives, ThatCannotBeMadeAreNotUsed) {
  Machine machine;
  Profile profile = capable();
  profile.attributes.max_srq_wr = 8;  // fewer than any session needs
  const auto device = open(machine.add(profile));
  EXPECT_EQ(device->capabilities().max_srq_wr, 0u);
}

TEST_F(Budget, ThatAControlGroupSetsIsLookedFor) {
  open_with(capable());
  const auto memory = device_->alloc_memory(4096, "test");
  nic_->registration_errors = {EAGAIN};
  std::string error;
  EXPECT_EQ(device_->reg_mr(memory->data(), 4096, fabric::access_local_write, &error), nullptr);
  EXPECT_NE(error.find("rdma.max"), std::string::npos) << error;
}

}  // namespace
}  // namespace rdma_rpc::nic

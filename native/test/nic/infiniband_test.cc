// Tests the attributes that a connection over the sideband sets on InfiniBand, where rdma_cm would ask the
// subnet manager. A port with several LIDs (LMC) is reached by its first LID, and the service level is that
// of the option.
#include <algorithm>
#include <vector>

#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

class InfiniBand : public testing::Test {
 protected:
  InfiniBand() {
    for (std::size_t i = 0; i < 2; ++i) {
      Nic& nic = *nics_[i];
      nic.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
      nic.port.lid = static_cast<std::uint16_t>(8 * (i + 1));
      nic.port.lmc = 3;
      nic.gids[0].gid_type = IBV_GID_TYPE_IB;
      nic.told = [this](const ibv_qp_attr& attr, int mask) {
        if ((mask & IBV_QP_AV) != 0) paths_.push_back(attr.ah_attr);
      };
    }
  }
  /// Connects two queue pairs, one of each device, and returns the paths of both.
  std::vector<ibv_ah_attr> paths(const fabric::VerbsOptions& options = {}) {
    const auto client = open(*nics_[0], options), server = open(*nics_[1], options);
    paths_.clear();
    EXPECT_EQ(Connected(*client, *server).error, "");
    EXPECT_EQ(paths_.size(), 2u);
    return paths_;
  }

  Machine machine_;
  Nic* nics_[2] = {&machine_.add(named("nic0")), &machine_.add(named("nic1"))};
  std::vector<ibv_ah_attr> paths_;
};

TEST_F(InfiniBand, PortWithSeveralLidsIsReachedByItsFirst) {
  std::vector<int> lids;
  for (const ibv_ah_attr& path : paths()) {
    lids.push_back(path.dlid);
    EXPECT_EQ(path.src_path_bits, 0);
    EXPECT_EQ(path.is_global, 0);
  }
  std::sort(lids.begin(), lids.end());
  EXPECT_EQ(lids, (std::vector<int>{8, 16}));
}

TEST_F(InfiniBand, ServiceLevelIsThatOfTheOption) {
  fabric::VerbsOptions options;
  for (const ibv_ah_attr& path : paths(options)) EXPECT_EQ(path.sl, 0);
  options.service_level = 5;
  for (const ibv_ah_attr& path : paths(options)) EXPECT_EQ(path.sl, 5);
}

}  // namespace
}  // namespace rdma_rpc::nic

// Tests that when the kernel refuses an RDMA object because of a control group, the error names the limit.
#include "fabric/verbs/control_group.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace rdma_rpc::fabric::verbs {
namespace {

namespace files = std::filesystem;

class RdmaController : public testing::Test {
 protected:
  RdmaController() {
    files::create_directories(root_ / "proc/self");
    files::create_directories(root_ / "sys/fs/cgroup/rdma/pod/container");
    files::create_directories(root_ / "sys/fs/cgroup/pod/container");
  }
  ~RdmaController() override { files::remove_all(root_); }
  void write(const std::string& path, const std::string& text) { std::ofstream(root_ / path) << text; }
  std::string limit() const { return rdma_controller_limit(root_.string()); }

  files::path root_ = files::path(testing::TempDir()) / ("rdma_controller_" + std::to_string(::getpid()));
};

TEST_F(RdmaController, NamesTheNearestLimitAndWhatIsInUse) {
  write("proc/self/cgroup", "0::/pod/container\n");
  write("sys/fs/cgroup/pod/container/rdma.max", "mlx5_0 hca_handle=max hca_object=max\n");
  write("sys/fs/cgroup/pod/rdma.max", "mlx5_0 hca_handle=2 hca_object=2000\n");
  write("sys/fs/cgroup/pod/rdma.current", "mlx5_0 hca_handle=1 hca_object=2000\n");
  EXPECT_EQ(limit(),
            "; the control group of this process may have mlx5_0 hca_handle=2 hca_object=2000 "
            "(/sys/fs/cgroup/pod/rdma.max), and has mlx5_0 hca_handle=1 hca_object=2000");
}

TEST_F(RdmaController, ReadsControlGroupsOfVersion1) {
  write("proc/self/cgroup", "4:memory:/else\n3:rdma:/pod/container\n0::/\n");
  write("sys/fs/cgroup/rdma/pod/container/rdma.max", "rxe0 hca_handle=max hca_object=10\n");
  EXPECT_EQ(limit(),
            "; the control group of this process may have rxe0 hca_handle=max hca_object=10 "
            "(/sys/fs/cgroup/rdma/pod/container/rdma.max)");
}

TEST_F(RdmaController, SaysWhatToLookAtWhereItFindsNoLimit) {
  const std::string nothing = "; if a control group limits RDMA objects, raise its rdma.max";
  EXPECT_EQ(limit(), nothing);
  for (const char* line : {"0::/\n", "0::/pod/container\n", "nonsense\n", "::\n", ":\n", "0::"}) {
    write("proc/self/cgroup", line);
    EXPECT_EQ(limit(), nothing) << line;
  }
}

}  // namespace
}  // namespace rdma_rpc::fabric::verbs

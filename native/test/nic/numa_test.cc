// Tests that the memory of a device is near it, on machines with several NUMA nodes.
#include "fabric/verbs/numa.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace rdma_rpc::fabric::verbs {
namespace {

namespace files = std::filesystem;

class NodeOfADevice : public testing::Test {
 protected:
  NodeOfADevice() {
    files::create_directories(root_ / "sys/devices/system/node");
    files::create_directories(root_ / "sys/class/infiniband/mlx5_0/device");
  }
  ~NodeOfADevice() override { files::remove_all(root_); }
  int node(const std::string& online, const std::string& of_device) {
    std::ofstream(root_ / "sys/devices/system/node/online") << online << "\n";
    std::ofstream(root_ / "sys/class/infiniband/mlx5_0/device/numa_node") << of_device << "\n";
    return node_of_device("mlx5_0", root_.string());
  }
  files::path root_ = files::path(testing::TempDir()) / ("numa_" + std::to_string(::getpid()));
};

TEST_F(NodeOfADevice, IsReadFromTheSystem) {
  EXPECT_EQ(node("0-1", "1"), 1);
  EXPECT_EQ(node("0,3", "3"), 3);
}

TEST_F(NodeOfADevice, IsNotLookedForOnAMachineWithOne) { EXPECT_EQ(node("0", "0"), -1); }

TEST_F(NodeOfADevice, MayBeUnknown) {
  EXPECT_EQ(node("0-1", "-1"), -1);
  EXPECT_EQ(node("0-1", "99999"), -1);
  EXPECT_EQ(node("0-1", "rubbish"), -1);
  EXPECT_EQ(node_of_device("absent", root_.string()), -1);
  EXPECT_EQ(node_of_device("absent", (root_ / "nothing").string()), -1);
}

TEST(MemoryOfADevice, IsTakenFromItsNodeIfPossible) {
  constexpr std::size_t kBytes = 1 << 16;
  void* data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  const int error = prefer_node(data, kBytes, 0);
  if (error == ENOSYS || error == EPERM) {
    ::munmap(data, kBytes);
    GTEST_SKIP() << "this kernel has no memory policies: " << std::strerror(error);
  }
  EXPECT_EQ(error, 0);
  int policy = -1;
  unsigned long nodes[16] = {};
  EXPECT_EQ(::syscall(SYS_get_mempolicy, &policy, nodes, sizeof nodes * 8, data, MPOL_F_ADDR), 0);
  EXPECT_EQ(policy, MPOL_PREFERRED);
  EXPECT_EQ(nodes[0], 1u);
  EXPECT_EQ(prefer_node(data, kBytes, -1), 0);
  ::munmap(data, kBytes);
}

/// The kernel refuses the policy, and the memory is ordinary memory.
TEST(MemoryOfADevice, OfANodeThatIsNotThereIsOrdinaryMemory) {
  constexpr std::size_t kBytes = 1 << 16;
  void* data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  EXPECT_NE(prefer_node(data, kBytes, 999), 0);
  std::memset(data, 1, kBytes);
  ::munmap(data, kBytes);
}

}  // namespace
}  // namespace rdma_rpc::fabric::verbs

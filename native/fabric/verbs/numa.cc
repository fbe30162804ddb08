// See numa.h.
#include "fabric/verbs/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fstream>

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr int kNodesMax = 1024;

}  // namespace

int node_of_device(const std::string& device, const std::string& root) {
  std::string nodes;
  std::ifstream(root + "/sys/devices/system/node/online") >> nodes;
  // A single node is "0", several are "0-1" or "0,2".
  if (nodes.find_first_of(",-") == std::string::npos) return -1;
  int node = -1;
  const bool known =
      bool(std::ifstream(root + "/sys/class/infiniband/" + device + "/device/numa_node") >> node);
  return known && node >= 0 && node < kNodesMax ? node : -1;
}

int prefer_node(void* data, std::size_t bytes, int node) {
  if (node < 0 || node >= kNodesMax) return 0;
  constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, kNodesMax / kBits> mask{};
  const auto bit = static_cast<std::size_t>(node);
  mask[bit / kBits] = 1ul << bit % kBits;
  // The node is preferred and not required, because memory of another node is better than none.
  return ::syscall(SYS_mbind, data, bytes, MPOL_PREFERRED, mask.data(), kNodesMax + 1, 0) == 0 ? 0 : errno;
}

}  // namespace rdma_rpc::fabric::verbs

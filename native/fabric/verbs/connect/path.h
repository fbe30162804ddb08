// Determines the path of a queue pair's packets when rdma_cm does not provide it. This code is called when
// queue pairs connect, on the device's thread.
#pragma once

#include <cstdint>
#include <cstring>

#include "fabric/verbs/port.h"

namespace rdma_rpc::fabric::verbs {

/// Returns whether packets need a global route header. On Ethernet they always do. On InfiniBand they have
/// this header when the device requires it, or when the peer is in another subnet. The first half of a GID
/// names the subnet.
inline bool needs_route(const Port& port, const Address& peer) {
  constexpr std::size_t kSubnetBytes = 8;
  return port.needs_grh || port.address.link_layer == IBV_LINK_LAYER_ETHERNET ||
         std::memcmp(port.address.gid.data(), peer.gid.data(), kSubnetBytes) != 0;
}

/// Returns a label of 20 bits that differs between connections. RoCE v2 computes the UDP source port from it,
/// so that switches with several paths (ECMP) spread the connections between two hosts over the paths. Older
/// kernels set such a label only for connections by rdma_cm.
inline std::uint32_t flow_label(std::uint32_t own_qp, std::uint32_t peer_qp) {
  constexpr std::uint32_t kMask = 0xfffff;
  const std::uint64_t both = std::uint64_t{own_qp} * peer_qp;
  const auto label = static_cast<std::uint32_t>(both ^ both >> 20 ^ both >> 40) & kMask;
  return label == 0 ? 1 : label;
}

inline ibv_ah_attr path_to(const Port& port, const Address& peer) {
  constexpr std::uint8_t kHopLimit = 64;
  ibv_ah_attr path{};
  path.dlid = peer.lid;
  path.port_num = port.number;
  path.is_global = needs_route(port, peer) ? 1 : 0;
  path.grh.sgid_index = port.gid_index;
  path.grh.hop_limit = kHopLimit;
  std::memcpy(path.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  return path;
}

}  // namespace rdma_rpc::fabric::verbs

// The path of a queue pair's packets when rdma_cm does not name it. Called when queue pairs connect, on the
// device's thread.
#pragma once

#include <cstring>

#include "fabric/verbs/port.h"

namespace rdma_rpc::fabric::verbs {

/// Whether packets need a global route header: always on Ethernet; on InfiniBand where the device insists, or
/// where the peer is in another subnet (the first half of a GID).
inline bool needs_route(const Port& port, const Address& peer) {
  constexpr std::size_t kSubnetBytes = 8;
  return port.needs_grh || port.address.link_layer == IBV_LINK_LAYER_ETHERNET ||
         std::memcmp(port.address.gid.data(), peer.gid.data(), kSubnetBytes) != 0;
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

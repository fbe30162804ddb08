// The network interface that has an IP address, and which GIDs are its own. Called when devices are opened or
// listed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

struct Interface {
  unsigned index = 0;
  std::array<std::uint8_t, 16> address{};  ///< as a GID: an IPv4 address is ::ffff:a.b.c.d
  std::vector<std::uint8_t> hardware;      ///< 6 bytes on Ethernet, 20 on InfiniBand

  /// How well a GID fits: 0 not at all, 1 it is of this interface, 2 it is the address itself.
  int fits(const ibv_gid_entry& gid) const;
};

/// None when no interface of this machine has the address, or when it is no address.
std::optional<Interface> interface_with(const std::string& address);

/// ::ffff:10.0.0.1 is written 10.0.0.1.
std::string gid_text(const std::uint8_t* gid);
/// RoCE v2 addresses of IPv4.
bool is_mapped_ipv4(const std::uint8_t* gid);

}  // namespace rdma_rpc::fabric::verbs

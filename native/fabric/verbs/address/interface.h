// Finds the network interface that has an IP address, and the GIDs that belong to it. This code is called
// when devices are opened or listed.
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
  std::array<std::uint8_t, 16> address{};  ///< in the form of a GID: an IPv4 address is ::ffff:a.b.c.d
  std::vector<std::uint8_t> hardware;      ///< 6 bytes on Ethernet, 20 on InfiniBand
  std::vector<std::array<std::uint8_t, 16>> addresses;  ///< all that it has, in that form

  /// Returns how well a GID fits: 2 if it is the address itself, 1 if it belongs to this interface, otherwise
  /// 0.
  int fits(const ibv_gid_entry& gid) const;
};

/// Returns nothing when the text is not an address, or no interface of this machine has it.
std::optional<Interface> interface_with(const std::string& address);

/// Returns a GID as text; ::ffff:10.0.0.1 becomes 10.0.0.1.
std::string gid_text(const std::uint8_t* gid);
/// Returns whether the GID is a RoCE v2 GID of an IPv4 address.
bool is_mapped_ipv4(const std::uint8_t* gid);

}  // namespace rdma_rpc::fabric::verbs

// IP addresses of this host and of peers, as rdma_cm wants them. Used when devices are opened and queue pairs
// connect.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rdma_rpc::fabric::verbs {

struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};  ///< IPv6; IPv4 as ::ffff:a.b.c.d, which is how a GID has it too
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  ///< the interface of a link-local address; means something on this host only

  bool is_ipv4() const;
  /// Neither empty nor loopback nor multicast.
  bool is_host() const;
};

/// Enough of a sockaddr for either family.
sockaddr_storage to_sockaddr(const IpAddress& address);
IpAddress from_sockaddr(const sockaddr& address);
/// As people write it, with the port if there is one.
std::string to_string(const IpAddress& address);
/// Of all interfaces that are up, without loopback.
std::vector<IpAddress> host_addresses();

}  // namespace rdma_rpc::fabric::verbs

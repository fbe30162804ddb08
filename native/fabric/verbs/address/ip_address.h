// Converts IP addresses of this host and of peers to the form that rdma_cm needs. This file is used when
// devices are opened and queue pairs connect.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rdma_rpc::fabric::verbs {

/// The first bytes of an IPv4 address in the form of an IPv6 address (RFC 4291, section 2.5.5.2).
inline constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};  ///< IPv6; IPv4 as ::ffff:a.b.c.d, which is also its form in a GID
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  ///< interface of a link-local address; meaningful on this host only

  bool is_ipv4() const;
  /// Returns whether the address belongs to a host, so that it is not empty, loopback or multicast.
  bool is_host() const;
};

/// Returns the address in a structure that is large enough for either family.
sockaddr_storage to_sockaddr(const IpAddress& address);
IpAddress from_sockaddr(const sockaddr& address);
/// Returns the address as text, with the port if it is not 0.
std::string to_string(const IpAddress& address);
/// Returns the addresses of all interfaces that are up, except loopback.
std::vector<IpAddress> host_addresses();

}  // namespace rdma_rpc::fabric::verbs

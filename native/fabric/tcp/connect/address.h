// The address of a queue pair as it travels over the sideband: fixed size, little endian, with a checksum, so
// that a blob that was damaged leads nowhere instead of to a stranger. Made and read when queue pairs
// connect.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/greeting.h"

namespace rdma_rpc::fabric::tcp {

/// Where to dial: an IPv6 address and port; IPv4 as ::ffff:a.b.c.d. A link-local one has the number of its
/// interface on this host in bytes 4 to 7, which are 0 in what others call it.
struct Place {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;
};

/// From numbers ("10.0.0.1", "2001:db8::1", "fe80::1%eth0"). False: that is no address, or there is no such
/// interface.
bool parse_host(const std::string& host, Place* place);
std::string to_text(const Place& place);
/// As connect() and bind() want it. Returns its length.
socklen_t to_sockaddr(const Place& place, sockaddr_storage* to);
/// The place of a listening socket, or of this end of a connection. Returns false when the system does not
/// say.
bool place_of(int fd, Place* place);
/// The place of the other end of a connection. Returns false when the system does not say.
bool peer_place_of(int fd, Place* place);

struct Address {
  bool active = false;  ///< this side dials
  Place place;          ///< passive side: where it listens
  Token token{};
};
inline constexpr std::size_t kAddressBytes = 4 + 1 + 1 + 2 + 16 + 16 + 4;

std::vector<std::byte> encode(const Address& address);
/// Checks a peer's bytes. Empty when they are an address, else why not.
std::string decode(std::span<const std::byte> bytes, Address* address);

}  // namespace rdma_rpc::fabric::tcp

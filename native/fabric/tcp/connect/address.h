// Encodes and decodes the address of a queue pair, as the sideband connection carries it. The address has a
// fixed size, little-endian byte order and a checksum, so that a damaged blob is refused instead of leading
// to another peer. Addresses are created and read when queue pairs connect.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/connect_message.h"

namespace rdma_rpc::fabric::tcp {

/// An endpoint: an IPv6 address and a port. IPv4 addresses are written as ::ffff:a.b.c.d. A link-local
/// address has the number of its interface on this host in bytes 4 to 7. These bytes are 0 in the form that
/// other hosts use.
struct Endpoint {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;
};

/// Parses a numeric address ("10.0.0.1", "2001:db8::1", "fe80::1%eth0"). Returns false when the text is not
/// an address or names an unknown interface.
bool parse_host(const std::string& host, Endpoint* endpoint);
std::string to_text(const Endpoint& endpoint);
/// Converts to the form that connect() and bind() use. Returns its length.
socklen_t to_sockaddr(const Endpoint& endpoint, sockaddr_storage* to);
/// Reads the local address of a listening or connected socket. Returns false when the system does not report
/// it.
bool local_endpoint(int fd, Endpoint* endpoint);
/// Reads the remote address of a connection. Returns false when the system does not report it.
bool remote_endpoint(int fd, Endpoint* endpoint);

struct Address {
  bool active = false;  ///< true on the side that opens the connection
  Endpoint endpoint;    ///< passive side: the endpoint at which it listens
  Token token{};
};
inline constexpr std::size_t kAddressBytes = 4 + 1 + 1 + 2 + 16 + 16 + 4;

std::vector<std::byte> encode(const Address& address);
/// Parses and checks a peer's bytes. Returns "" on success, otherwise the reason why they are not an address.
std::string decode(std::span<const std::byte> bytes, Address* address);

}  // namespace rdma_rpc::fabric::tcp

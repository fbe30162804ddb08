// See address.h.
#include "fabric/tcp/connect/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "fabric/tcp/tcp.h"
#include "fabric/versions.h"

namespace rdma_rpc::fabric {
namespace tcp {
namespace {

static_assert(std::endian::native == std::endian::little,
              "blobs and frames are copied as they lie in memory");

constexpr std::uint32_t kMagic = 0x70637452;  // "Rtcp"
/// Size of magic and version.
constexpr std::size_t kVersionedBytes = 5;
constexpr std::size_t kCheckOffset = kAddressBytes - 4;
constexpr std::uint8_t kIpv4Prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/// FNV-1a detects damage, not malice: an attacker who can change a blob can also compute its checksum.
std::uint32_t checksum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0x811c9dc5;
  for (const std::byte byte : bytes) sum = (sum ^ static_cast<std::uint32_t>(byte)) * 0x01000193;
  return sum;
}

constexpr std::size_t kZoneOffset = 4;

/// fe80::/10. Such an address has a meaning only together with an interface of its host.
bool is_link_local(const Endpoint& endpoint) {
  return endpoint.ip[0] == 0xfe && (endpoint.ip[1] & 0xc0) == 0x80;
}

/// Removes the interface number from a link-local address and returns it.
std::uint32_t take_zone(Endpoint* endpoint) {
  std::uint32_t zone = 0;
  if (!is_link_local(*endpoint)) return zone;
  std::memcpy(&zone, endpoint->ip.data() + kZoneOffset, sizeof zone);
  std::memset(endpoint->ip.data() + kZoneOffset, 0, sizeof zone);
  return zone;
}

bool parse_zoned(const std::string& ip, const std::string& name, Endpoint* endpoint) {
  if (::inet_pton(AF_INET6, ip.c_str(), endpoint->ip.data()) != 1 || !is_link_local(*endpoint)) return false;
  const std::uint32_t zone = ::if_nametoindex(name.c_str());
  std::memcpy(endpoint->ip.data() + kZoneOffset, &zone, sizeof zone);
  return zone != 0;
}

bool is_ipv4(const Endpoint& endpoint) {
  return std::memcmp(endpoint.ip.data(), kIpv4Prefix, sizeof kIpv4Prefix) == 0;
}

bool from_sockaddr(const sockaddr_storage& name, Endpoint* endpoint) {
  if (name.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&name);
    std::memcpy(endpoint->ip.data(), kIpv4Prefix, sizeof kIpv4Prefix);
    std::memcpy(endpoint->ip.data() + sizeof kIpv4Prefix, &v4->sin_addr, sizeof v4->sin_addr);
    endpoint->port = ntohs(v4->sin_port);
    return true;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&name);
  std::memcpy(endpoint->ip.data(), &v6->sin6_addr, endpoint->ip.size());
  endpoint->port = ntohs(v6->sin6_port);
  return name.ss_family == AF_INET6;
}

}  // namespace

bool parse_host(const std::string& host, Endpoint* endpoint) {
  const std::size_t percent = host.find('%');
  if (percent != std::string::npos) {
    return parse_zoned(host.substr(0, percent), host.substr(percent + 1), endpoint);
  }
  if (::inet_pton(AF_INET6, host.c_str(), endpoint->ip.data()) == 1) return true;
  std::memcpy(endpoint->ip.data(), kIpv4Prefix, sizeof kIpv4Prefix);
  return ::inet_pton(AF_INET, host.c_str(), endpoint->ip.data() + sizeof kIpv4Prefix) == 1;
}

std::string to_text(const Endpoint& at) {
  Endpoint endpoint = at;
  char zone[1 + IF_NAMESIZE] = {};
  const std::uint32_t index = take_zone(&endpoint);
  if (index != 0 && ::if_indextoname(index, zone + 1) != nullptr) zone[0] = '%';
  char ip[INET6_ADDRSTRLEN] = {}, text[INET6_ADDRSTRLEN + sizeof zone + 8];
  const bool v4 = is_ipv4(endpoint);
  ::inet_ntop(v4 ? AF_INET : AF_INET6, endpoint.ip.data() + (v4 ? sizeof kIpv4Prefix : 0), ip, sizeof ip);
  std::snprintf(text, sizeof text, v4 ? "%s%s:%u" : "[%s%s]:%u", ip, zone,
                static_cast<unsigned>(endpoint.port));
  return text;
}

socklen_t to_sockaddr(const Endpoint& at, sockaddr_storage* to) {
  *to = {};
  Endpoint endpoint = at;
  const std::uint32_t zone = take_zone(&endpoint);
  if (is_ipv4(endpoint)) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(to);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    std::memcpy(&v4->sin_addr, endpoint.ip.data() + sizeof kIpv4Prefix, sizeof v4->sin_addr);
    return sizeof *v4;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(to);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(endpoint.port);
  std::memcpy(&v6->sin6_addr, endpoint.ip.data(), sizeof v6->sin6_addr);
  v6->sin6_scope_id = zone;
  return sizeof *v6;
}

bool local_endpoint(int fd, Endpoint* endpoint) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) == 0 && from_sockaddr(name, endpoint);
}

bool remote_endpoint(int fd, Endpoint* endpoint) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&name), &length) == 0 && from_sockaddr(name, endpoint);
}

std::vector<std::byte> encode(const Address& address) {
  std::vector<std::byte> bytes(kAddressBytes);
  std::byte* to = bytes.data();
  std::memcpy(to, &kMagic, 4);
  to[4] = std::byte{kTcpVersion};
  to[5] = std::byte{address.active};
  std::memcpy(to + 6, &address.endpoint.port, 2);
  std::memcpy(to + 8, address.endpoint.ip.data(), 16);
  std::memcpy(to + 24, address.token.data(), 16);
  const std::uint32_t check = checksum(std::span(bytes).first(kCheckOffset));
  std::memcpy(to + kCheckOffset, &check, 4);
  return bytes;
}

std::string decode(std::span<const std::byte> bytes, Address* address) {
  // Magic and version come first in every version. Size and checksum may differ in other versions.
  std::uint32_t magic = 0, check = 0;
  if (bytes.size() >= kVersionedBytes) std::memcpy(&magic, bytes.data(), 4);
  if (magic == kMagic && bytes[4] != std::byte{kTcpVersion}) {
    return "the peer has version " + std::to_string(static_cast<int>(bytes[4])) +
           " of this fabric, this side version " + std::to_string(kTcpVersion) +
           "; use the same rdma-rpc release on both sides";
  }
  if (bytes.size() != kAddressBytes) {
    return "the peer's address has " + std::to_string(bytes.size()) + " bytes, not " +
           std::to_string(kAddressBytes);
  }
  std::memcpy(&check, bytes.data() + kCheckOffset, 4);
  if (magic != kMagic) return "the peer's address is not a tcp address";
  if (check != checksum(bytes.first(kCheckOffset)))
    return "the peer's address is damaged: its checksum differs";
  if (bytes[5] > std::byte{1}) return "the peer's address says neither active nor passive";
  address->active = bytes[5] == std::byte{1};
  std::memcpy(&address->endpoint.port, bytes.data() + 6, 2);
  std::memcpy(address->endpoint.ip.data(), bytes.data() + 8, 16);
  std::memcpy(address->token.data(), bytes.data() + 24, 16);
  return {};
}

}  // namespace tcp

std::vector<std::byte> tcp_address_via(std::span<const std::byte> address, const std::string& host,
                                       std::uint16_t port, std::string* error) {
  tcp::Address parsed;
  tcp::Endpoint via;
  std::string why = tcp::decode(address, &parsed);
  if (why.empty() && parsed.active) why = "the side that dials has no address to be dialled at";
  if (why.empty() && !tcp::parse_host(host, &via)) why = "'" + host + "' is not a numeric IP address";
  if (!why.empty()) {
    if (error != nullptr) *error = "tcp: " + why;
    return {};
  }
  via.port = port;
  parsed.endpoint = via;
  return tcp::encode(parsed);
}

}  // namespace rdma_rpc::fabric

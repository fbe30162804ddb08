// See interface.h.
#include "fabric/verbs/address/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <cstring>

#include "fabric/verbs/address/ip_address.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Layout of a hardware address of IP over InfiniBand: queue pair number and flags, then the GID.
constexpr std::size_t kInfinibandBytes = 20, kInfinibandGid = 4;

using Bytes = std::array<std::uint8_t, 16>;

Bytes mapped(const in_addr& ipv4) {
  Bytes bytes{};
  std::ranges::copy(kMappedPrefix, bytes.begin());
  std::memcpy(bytes.data() + kMappedPrefix.size(), &ipv4, sizeof ipv4);
  return bytes;
}

std::optional<Bytes> parse(const std::string& text) {
  in_addr ipv4{};
  if (::inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return mapped(ipv4);
  Bytes bytes{};
  // A link-local address may name its interface: fe80::1%eth0.
  if (::inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

std::optional<Bytes> bytes_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) return mapped(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  if (address->sa_family != AF_INET6) return std::nullopt;
  Bytes bytes{};
  std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, bytes.size());
  return bytes;
}

std::vector<std::uint8_t> hardware_of(const ifaddrs* list, const std::string& name) {
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (name != entry->ifa_name || entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_PACKET)
      continue;
    // The type sockaddr_ll has room for 8 bytes, but getifaddrs provides 20.
    const auto* link = reinterpret_cast<const sockaddr_ll*>(entry->ifa_addr);
    const auto* first = reinterpret_cast<const std::uint8_t*>(link) + offsetof(sockaddr_ll, sll_addr);
    return {first, first + std::min<std::size_t>(link->sll_halen, kInfinibandBytes)};
  }
  return {};
}

std::vector<Bytes> addresses_of(const ifaddrs* list, const std::string& name) {
  std::vector<Bytes> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::optional<Bytes> bytes = name == entry->ifa_name ? bytes_of(entry->ifa_addr) : std::nullopt;
    if (bytes) found.push_back(*bytes);
  }
  return found;
}

}  // namespace

int Interface::fits(const ibv_gid_entry& gid) const {
  if (std::memcmp(gid.gid.raw, address.data(), address.size()) == 0) return 2;
  // A device that several network namespaces share shows the GIDs of all of them. The interface index of a
  // GID is valid only in the namespace of that GID, and here it may be the index of another interface.
  const bool by_ip = gid.gid_type == IBV_GID_TYPE_ROCE_V1 || gid.gid_type == IBV_GID_TYPE_ROCE_V2;
  const auto is_it = [&gid](const auto& own) {
    return std::memcmp(gid.gid.raw, own.data(), own.size()) == 0;
  };
  if (by_ip && std::none_of(addresses.begin(), addresses.end(), is_it)) return 0;
  if (gid.ndev_ifindex != 0) return gid.ndev_ifindex == index ? 1 : 0;
  if (hardware.size() == kInfinibandBytes)
    return std::memcmp(gid.gid.raw, hardware.data() + kInfinibandGid, sizeof gid.gid.raw) == 0 ? 1 : 0;
  // The GID of an iWARP port is its hardware address followed by zeros.
  return !hardware.empty() && std::memcmp(gid.gid.raw, hardware.data(), hardware.size()) == 0 ? 1 : 0;
}

std::optional<Interface> interface_with(const std::string& address) {
  const std::optional<Bytes> wanted = parse(address);
  ifaddrs* list = nullptr;
  if (!wanted || ::getifaddrs(&list) != 0) return std::nullopt;
  std::optional<Interface> found;
  for (const ifaddrs* entry = list; entry != nullptr && !found; entry = entry->ifa_next) {
    if (bytes_of(entry->ifa_addr) != wanted) continue;
    found = {::if_nametoindex(entry->ifa_name), *wanted, hardware_of(list, entry->ifa_name),
             addresses_of(list, entry->ifa_name)};
  }
  ::freeifaddrs(list);
  return found;
}

std::string gid_text(const std::uint8_t* gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_mapped_ipv4(gid)) {
    ::inet_ntop(AF_INET, gid + kMappedPrefix.size(), text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, gid, text, sizeof text);
  }
  return text;
}

bool is_mapped_ipv4(const std::uint8_t* gid) {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), gid);
}

}  // namespace rdma_rpc::fabric::verbs

// See ip_address.h.
#include "fabric/verbs/address/ip_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace rdma_rpc::fabric::verbs {
bool IpAddress::is_ipv4() const {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin());
}

bool IpAddress::is_host() const {
  if (is_ipv4()) return bytes[12] != 0 && bytes[12] != 127 && bytes[12] < 224;
  // Addresses whose first byte is 0, such as :: and ::1, belong to no host. ff00::/8 is multicast.
  return bytes[0] != 0 && bytes[0] != 0xff;
}

sockaddr_storage to_sockaddr(const IpAddress& address) {
  sockaddr_storage storage{};
  if (address.is_ipv4()) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address.port);
    std::memcpy(&v4->sin_addr, address.bytes.data() + kMappedPrefix.size(), sizeof v4->sin_addr);
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address.port);
    v6->sin6_scope_id = address.scope;
    std::memcpy(&v6->sin6_addr, address.bytes.data(), sizeof v6->sin6_addr);
  }
  return storage;
}

IpAddress from_sockaddr(const sockaddr& from) {
  IpAddress address;
  if (from.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.bytes.begin());
    std::memcpy(address.bytes.data() + kMappedPrefix.size(), &v4.sin_addr, sizeof v4.sin_addr);
    address.port = ntohs(v4.sin_port);
  } else if (from.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    std::memcpy(address.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    address.port = ntohs(v6.sin6_port);
    address.scope = v6.sin6_scope_id;
  }
  return address;
}

std::string to_string(const IpAddress& address) {
  char ip[INET6_ADDRSTRLEN] = "";
  const bool v4 = address.is_ipv4();
  ::inet_ntop(v4 ? AF_INET : AF_INET6, address.bytes.data() + (v4 ? kMappedPrefix.size() : 0), ip, sizeof ip);
  char text[INET6_ADDRSTRLEN + 16];
  std::snprintf(text, sizeof text, address.port == 0 ? "%s" : v4 ? "%s:%u" : "[%s]:%u", ip, address.port);
  return text;
}

std::vector<IpAddress> host_addresses() {
  std::vector<IpAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const IpAddress address = from_sockaddr(*each->ifa_addr);
    if (address.is_host()) found.push_back(address);
  }
  ::freeifaddrs(list);
  return found;
}

}  // namespace rdma_rpc::fabric::verbs

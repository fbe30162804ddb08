// See host.h.
#include "nic/device/host.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

namespace rdma_rpc::nic {
namespace {

const Host* script = nullptr;

/// An entry of the list, with the objects to which it points.
struct Entry {
  ifaddrs entry{};
  sockaddr_in address{}, mask{};
  std::string name;
};

}  // namespace

Host::Host() { script = this; }
Host::~Host() { script = nullptr; }
const Host* Host::current() { return script; }

}  // namespace rdma_rpc::nic

using rdma_rpc::nic::Entry;
using rdma_rpc::nic::Host;

#define IN_FRONT extern "C" __attribute__((visibility("default")))

template <typename Function>
static Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

IN_FRONT int getifaddrs(ifaddrs** list) noexcept {
  static const auto get = real<int (*)(ifaddrs**)>("getifaddrs");
  const Host* host = Host::current();
  if (host == nullptr) return get(list);
  *list = nullptr;
  for (std::size_t i = host->addresses.size(); i-- > 0;) {
    auto* made = new Entry;
    made->name = host->addresses[i].interface;
    made->address.sin_family = AF_INET;
    ::inet_pton(AF_INET, host->addresses[i].ip.c_str(), &made->address.sin_addr);
    made->mask.sin_family = AF_INET;
    const unsigned prefix = host->addresses[i].prefix;
    made->mask.sin_addr.s_addr = htonl(prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix));
    made->entry = {*list,
                   made->name.data(),
                   IFF_UP | IFF_RUNNING,
                   reinterpret_cast<sockaddr*>(&made->address),
                   reinterpret_cast<sockaddr*>(&made->mask),
                   {},
                   nullptr};
    *list = &made->entry;
  }
  return 0;
}

IN_FRONT void freeifaddrs(ifaddrs* list) noexcept {
  static const auto free = real<void (*)(ifaddrs*)>("freeifaddrs");
  if (Host::current() == nullptr) return free(list);
  static_assert(offsetof(Entry, entry) == 0);
  while (list != nullptr) {
    auto* made = reinterpret_cast<Entry*>(list);
    list = list->ifa_next;
    delete made;
  }
}

IN_FRONT unsigned if_nametoindex(const char* name) noexcept {
  static const auto index = real<unsigned (*)(const char*)>("if_nametoindex");
  if (Host::current() == nullptr) return index(name);
  for (const Host::Address& each : Host::current()->addresses) {
    if (each.interface == name) return each.index;
  }
  return 0;
}

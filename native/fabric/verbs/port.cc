// See port.h.
#include "fabric/verbs/port.h"

#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

#include "fabric/verbs/address/ip_address.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Limit of the GIDs of a port, which is more than any known device has.
constexpr std::size_t kGidsMax = 1024;

const char* type_text(std::uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_IB:
      return "IB";
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "unknown type";
  }
}

const char* state_text(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    default:
      return "unusable";
  }
}

std::string down_text(const std::string& port, ibv_port_state state) {
  return port + " is " + state_text(state) + ", not ACTIVE: is its link up (ip link), its cable in?";
}

std::string port_text(ibv_context* device, std::uint8_t number) {
  return std::string(ibv_get_device_name(device->device)) + " port " + std::to_string(number);
}

/// Returns the rank of a GID; larger is better. Addresses of this network namespace come first, because a
/// shared device also shows the addresses of other namespaces. Among them the order is RoCE v2 on IPv4, on
/// global IPv6 and on link-local IPv6, and then RoCE v1.
int rank(const ibv_gid_entry& gid, std::span<const IpAddress> own) {
  constexpr int kOwn = 10;
  const auto is_it = [&gid](const IpAddress& ip) {
    return std::memcmp(ip.bytes.data(), gid.gid.raw, ip.bytes.size()) == 0;
  };
  const int base = std::any_of(own.begin(), own.end(), is_it) ? kOwn : 0;
  if (gid.gid_type == IBV_GID_TYPE_IB) return base + 1;
  if (gid.gid_type == IBV_GID_TYPE_ROCE_V1) return base + 2;
  if (is_mapped_ipv4(gid.gid.raw)) return base + 5;
  return base + (gid.gid.raw[0] == 0xfe && gid.gid.raw[1] == 0x80 ? 3 : 4);
}

std::vector<ibv_gid_entry> gids_of(ibv_context* device, std::uint32_t port) {
  std::vector<ibv_gid_entry> gids(kGidsMax);
  const ssize_t count = ibv_query_gid_table(device, gids.data(), gids.size(), 0);
  gids.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  std::erase_if(gids, [port](const ibv_gid_entry& gid) { return gid.port_num != port; });
  return gids;
}

std::uint8_t ports_of(ibv_context* device) {
  ibv_device_attr attr{};
  return ibv_query_device(device, &attr) == 0 ? attr.phys_port_cnt : std::uint8_t{0};
}

struct BestGid {
  const ibv_gid_entry* gid = nullptr;
  int fit = 0;
};

BestGid choose_gid(std::span<const ibv_gid_entry> gids, const VerbsOptions& options,
                   const std::optional<Interface>& interface) {
  BestGid best;
  const std::vector<IpAddress> own = gids.size() > 1 ? host_addresses() : std::vector<IpAddress>();
  for (const ibv_gid_entry& gid : gids) {
    if (options.gid_index >= 0 && gid.gid_index != static_cast<std::uint32_t>(options.gid_index)) continue;
    const int fit = interface ? interface->fits(gid) : 0;
    if (best.gid == nullptr || fit > best.fit || (fit == best.fit && rank(gid, own) > rank(*best.gid, own)))
      best = {&gid, fit};
  }
  return best;
}

/// Copies the attributes of the port, except for its GID.
void enter(const ibv_port_attr& attr, Port* port) {
  port->max_msg_bytes = attr.max_msg_sz;
  port->needs_grh = (attr.flags & IBV_QPF_GRH_REQUIRED) != 0;
  port->address.mtu = static_cast<std::uint8_t>(attr.active_mtu);
  port->address.link_layer = attr.link_layer;
  port->address.lid = attr.lid;
}

void enter(const ibv_gid_entry& gid, Port* port) {
  port->gid_index = static_cast<std::uint8_t>(gid.gid_index);
  port->interface = gid.ndev_ifindex;
  port->address.gid_type = static_cast<std::uint8_t>(gid.gid_type);
  std::memcpy(port->address.gid.data(), gid.gid.raw, port->address.gid.size());
}

std::string why_no_gid(const std::string& port, std::span<const ibv_gid_entry> gids, int wanted) {
  if (gids.empty()) return port + " has no GID: give its network interface an IP address";
  std::string text = port + " has no GID number " + std::to_string(wanted) + " (option gidIndex); it has";
  for (const ibv_gid_entry& gid : gids) {
    text += (&gid == gids.data() ? " " : ", ") + std::to_string(gid.gid_index) + " (" +
            gid_text(gid.gid.raw) + ", " + type_text(gid.gid_type) + ")";
  }
  return text;
}

}  // namespace

std::string choose_port(ibv_context* device, const VerbsOptions& options,
                        const std::optional<Interface>& interface, Port* chosen) {
  const std::string name = ibv_get_device_name(device->device);
  const std::uint8_t ports = ports_of(device);
  if (options.port > ports)
    return name + " has no port " + std::to_string(options.port) + " (option port); it has 1 to " +
           std::to_string(ports);
  std::string why = name + " has no port";
  int best = -1;
  for (std::uint8_t number = 1; number <= ports; ++number) {
    if (options.port != 0 && options.port != number) continue;
    const std::string text = port_text(device, number);
    ibv_port_attr attr{};
    if (ibv_query_port(device, number, &attr) != 0) continue;
    if (attr.state != IBV_PORT_ACTIVE) {
      if (best < 0) why = down_text(text, attr.state);
      continue;
    }
    const std::vector<ibv_gid_entry> gids = gids_of(device, number);
    // iWARP finds its peers by IP address alone and needs no GID. However, a GID index that the user gives
    // must exist.
    static constexpr ibv_gid_entry kNone{};
    const bool needs_none = device->device->transport_type == IBV_TRANSPORT_IWARP && options.gid_index < 0;
    BestGid found = choose_gid(gids, options, interface);
    if (needs_none) found.gid = &kNone;
    if (found.gid == nullptr) {
      if (best < 0) why = why_no_gid(text, gids, options.gid_index);
      continue;
    }
    if (found.fit <= best) continue;
    best = found.fit;
    why.clear();
    *chosen = {};
    chosen->number = number;
    chosen->pkey_index = options.pkey_index;
    chosen->has_address = found.fit > 0;
    enter(attr, chosen);
    enter(*found.gid, chosen);
  }
  return why;
}

void refresh_port(ibv_context* device, const VerbsOptions& options, Port* port) {
  ibv_port_attr attr{};
  if (ibv_query_port(device, port->number, &attr) == 0 && attr.state == IBV_PORT_ACTIVE) enter(attr, port);
  if (device->device->transport_type == IBV_TRANSPORT_IWARP && options.gid_index < 0) return;
  std::vector<ibv_gid_entry> gids = gids_of(device, port->number);
  // The old index is preferred, because one address may have two entries.
  const auto is_same = [port](const ibv_gid_entry& gid) {
    return gid.gid_type == port->address.gid_type &&
           std::memcmp(gid.gid.raw, port->address.gid.data(), port->address.gid.size()) == 0;
  };
  if (options.gid_index < 0 && std::any_of(gids.begin(), gids.end(), is_same))
    std::erase_if(gids, [&](const ibv_gid_entry& gid) { return !is_same(gid); });
  const auto is_there = [port](const ibv_gid_entry& gid) { return gid.gid_index == port->gid_index; };
  const auto is_near = [port](const ibv_gid_entry& gid) { return gid.ndev_ifindex == port->interface; };
  for (const auto& preferred : {std::function<bool(const ibv_gid_entry&)>(is_near), {is_there}}) {
    if (options.gid_index < 0 && std::any_of(gids.begin(), gids.end(), preferred))
      std::erase_if(gids, [&](const ibv_gid_entry& gid) { return !preferred(gid); });
  }
  if (const BestGid found = choose_gid(gids, options, std::nullopt); found.gid != nullptr)
    enter(*found.gid, port);
}

std::string why_down(ibv_context* device, std::uint8_t port) {
  ibv_port_attr attr{};
  if (ibv_query_port(device, port, &attr) != 0 || attr.state == IBV_PORT_ACTIVE) return "";
  return down_text(port_text(device, port), attr.state);
}

std::vector<VerbsPort> list_ports(ibv_context* device) {
  std::vector<VerbsPort> ports;
  for (std::uint8_t number = 1; number <= ports_of(device); ++number) {
    ibv_port_attr attr{};
    if (ibv_query_port(device, number, &attr) != 0) continue;
    VerbsPort& port = ports.emplace_back();
    port.number = number;
    port.active_mtu = 128u << attr.active_mtu;
    port.lid = attr.lid;
    port.state = state_text(attr.state);
    port.link_layer = attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
    for (const ibv_gid_entry& gid : gids_of(device, number)) {
      char name[IF_NAMESIZE] = "";
      if (gid.ndev_ifindex != 0) ::if_indextoname(gid.ndev_ifindex, name);
      port.gids.push_back({gid.gid_index, gid_text(gid.gid.raw), type_text(gid.gid_type), name});
    }
  }
  return ports;
}

}  // namespace rdma_rpc::fabric::verbs

// See address_handle.h.
#include "fabric/verbs/datagram/address_handle.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/verbs/address/interface.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/refusal.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::byte kNone{0}, kAll{0xff};
/// The first byte of a multicast address of IPv4 has these four bits.
constexpr std::byte kIpv4Group{0xe0}, kIpv4GroupMask{0xf0};
constexpr std::size_t kScopeByte = 1, kMapped = 10, kIpv4 = 12;  // offsets in a GID

bool has_ipv4(const Port& port) {
  return port.address.gid_type == IBV_GID_TYPE_ROCE_V2 && is_mapped_ipv4(port.address.gid.data());
}

bool is_ethernet(const Port& port) { return port.address.link_layer == IBV_LINK_LAYER_ETHERNET; }

}  // namespace

std::string to_group_of(const Port& port, Gid* group) {
  if (!has_ipv4(port)) return "";
  Gid& gid = *group;
  const bool mapped =
      std::all_of(&gid[kScopeByte + 1], &gid[kMapped], [](std::byte b) { return b == kNone; }) &&
      gid[kMapped] == kAll && gid[kMapped + 1] == kAll && (gid[kIpv4] & kIpv4GroupMask) == kIpv4Group;
  if (!mapped)
    return "the port has an IPv4 address, so its groups are ff0e::ffff:A.B.C.D with a multicast address of "
           "IPv4";
  gid[0] = gid[kScopeByte] = kNone;
  return "";
}

std::unique_ptr<AddressHandle> make_handle(ibv_pd* pd, const Port& port, const AhAttr& attr,
                                           std::string* error) {
  const std::string name = ibv_get_device_name(pd->context->device);
  const auto refuse = [&](const std::string& why) {
    if (error != nullptr) *error = name + " cannot make an address handle: " + why;
    return nullptr;
  };
  if (attr.gid == Gid{} && (is_ethernet(port) || attr.lid == 0))
    return refuse("it needs the GID of a port or group");
  if (!is_ethernet(port) && attr.lid == 0) return refuse("on InfiniBand it needs the LID of the peer's port");
  Gid to = attr.gid;
  if (is_multicast(to)) {
    if (const std::string why = to_group_of(port, &to); !why.empty()) return refuse(why);
  }
  ibv_ah_attr path{};
  path.dlid = attr.lid;
  path.sl = attr.service_level;
  path.port_num = port.number;
  path.is_global = attr.gid == Gid{} ? 0 : 1;
  std::memcpy(path.grh.dgid.raw, to.data(), to.size());
  path.grh.sgid_index = port.gid_index;
  path.grh.hop_limit = attr.hop_limit;
  path.grh.traffic_class = attr.traffic_class;
  path.grh.flow_label = attr.flow_label;
  errno = 0;
  AhPtr ah(ibv_create_ah(pd, &path));
  if (ah == nullptr)
    return refuse(gid_text(path.grh.dgid.raw) + " cannot be reached from GID " +
                  gid_text(port.address.gid.data()) + ": " + why_refused(errno));
  return std::make_unique<AddressHandle>(attr, std::move(ah));
}

std::unique_ptr<fabric::AddressHandle> Device::create_ah(const AhAttr& attr, std::string* error) {
  if (!capabilities().ud) return fabric::Device::create_ah(attr, error);
  refresh_port();
  return make_handle(pd_.get(), port_, attr, error);
}

std::unique_ptr<fabric::AddressHandle> Device::create_ah_from(const Wc& wc, const std::byte* grh,
                                                              std::string* error) {
  AhAttr attr;
  attr.lid = wc.slid;
  attr.service_level = wc.service_level;
  if (wc.has_grh && has_ipv4(port_)) {
    // The last bytes are the IPv4 header, which ends with the addresses of sender and receiver.
    constexpr std::size_t kSender = kGrhBytes - 8, kIpv4Bytes = 4;
    attr.gid[kMapped] = attr.gid[kMapped + 1] = kAll;
    std::copy_n(grh + kSender, kIpv4Bytes, attr.gid.begin() + kIpv4);
  } else if (wc.has_grh) {
    std::copy_n(grh + kGrhSourceGid, attr.gid.size(), attr.gid.begin());
  }
  return create_ah(attr, error);
}

Gid Device::gid() const {
  Gid gid;
  std::memcpy(gid.data(), port_.address.gid.data(), gid.size());
  return gid;
}

}  // namespace rdma_rpc::fabric::verbs

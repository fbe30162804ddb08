// See group.h.
#include "fabric/verbs/datagram/group.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "fabric/verbs/address/interface.h"
#include "fabric/verbs/datagram/address_handle.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// The LID that rdma_cm gives to all groups on Ethernet, where it means nothing.
constexpr std::uint16_t kLidOnEthernet = 0xc000;
constexpr std::size_t kIpv4InGid = 12;  // offset in a GID

/// Makes the host a member of the group on the port's network interface.
UniqueFd become_member(const Port& port, const ibv_gid& group) {
  const bool ipv4 = is_mapped_ipv4(group.raw);
  UniqueFd socket(::socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return socket;
  int result = 0;
  if (ipv4) {
    ip_mreqn request{};
    std::memcpy(&request.imr_multiaddr, &group.raw[kIpv4InGid], sizeof request.imr_multiaddr);
    std::memcpy(&request.imr_address, &port.address.gid[kIpv4InGid], sizeof request.imr_address);
    request.imr_ifindex = static_cast<int>(port.interface);
    result = ::setsockopt(socket.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
  } else {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.raw, sizeof request.ipv6mr_multiaddr);
    request.ipv6mr_interface = port.interface;
    result = ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request);
  }
  return result == 0 ? std::move(socket) : UniqueFd();
}

}  // namespace

std::unique_ptr<Group> Group::join(ibv_qp* qp, const Port& port, const Gid& group, std::string* why) {
  const std::string name = ibv_get_device_name(qp->context->device);
  if (!is_multicast(group)) {
    *why = name + ": the GID of a multicast group begins with ff";
    return nullptr;
  }
  Gid to = group;
  if (*why = to_group_of(port, &to); !why->empty()) {
    *why = name + ": " + *why;
    return nullptr;
  }
  std::unique_ptr<Group> joined(new Group(group));
  std::memcpy(joined->on_wire_.raw, to.data(), to.size());
  const std::string text = name + " cannot join the group " + gid_text(joined->on_wire_.raw) + ": ";
  joined->membership_ = become_member(port, joined->on_wire_);
  if (joined->membership_.get() < 0) {
    *why = text + "its network interface does not become a member: " + std::strerror(errno);
    return nullptr;
  }
  if (const int error = ibv_attach_mcast(qp, &joined->on_wire_, kLidOnEthernet); error != 0) {
    *why = text + std::strerror(error);
    return nullptr;
  }
  joined->qp_ = qp;
  return joined;
}

Group::~Group() {
  if (qp_ != nullptr) ibv_detach_mcast(qp_, &on_wire_, kLidOnEthernet);
}

}  // namespace rdma_rpc::fabric::verbs

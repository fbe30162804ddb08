// Connects the queue pairs of an endpoint. See endpoint.h.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "perf/bare/endpoint.h"

namespace rdma_rpc::perf::bare {
namespace {

constexpr std::uint8_t kHopLimit = 64;
/// Timeout of 67 ms, and six retries, as in the verbs fabric. Soft-RoCE treats 7 as unlimited.
constexpr std::uint8_t kAckTimeout = 14, kRetries = 6;
/// Requests to a peer without a posted receive are retried without limit, every 0.64 ms.
constexpr std::uint8_t kRnrRetries = 7, kRnrTimer = 12;
/// ::ffff:239.112.101.114, a group of the local site.
constexpr std::array<std::uint8_t, 16> kGroup{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 112, 101, 114};
constexpr std::size_t kIpv4At = 12;
/// The queue pair number that addresses all members of a group.
constexpr std::uint32_t kMulticastQpn = 0xffffff;

}  // namespace

Address BareEndpoint::local(const Queue& queue) const {
  Address own;
  own.qp_num = queue.qp->qp_num;
  own.psn = queue.psn;
  own.lid = port_.address.lid;
  own.transport = static_cast<std::uint8_t>(transport_);
  own.link_layer = port_.address.link_layer;
  own.mtu = port_.address.mtu;
  own.reads = reads_;
  own.gid = port_.address.gid;
  return own;
}

std::vector<std::byte> BareEndpoint::address(std::uint32_t queue_pair) const {
  const Address own = local(queues_[queue_pair]);
  std::vector<std::byte> bytes(sizeof own);
  std::memcpy(bytes.data(), &own, sizeof own);
  return bytes;
}

std::string BareEndpoint::connect(std::uint32_t queue_pair, std::span<const std::byte> bytes) {
  Queue& queue = queues_[queue_pair];
  const Address own = local(queue);
  Address peer;
  const std::uint32_t magic = peer.magic;
  if (bytes.size() != sizeof peer) return "the peer's address is none of a queue pair";
  std::memcpy(&peer, bytes.data(), sizeof peer);
  if (peer.magic != magic || peer.mtu < 1 || peer.mtu > 5 || peer.reads < 1)
    return "the peer's address is none of a queue pair";
  if (peer.transport != own.transport || peer.link_layer != own.link_layer)
    return "the peer's device is of another kind: InfiniBand and Ethernet do not reach each other";
  std::string why = move_to_rtr(queue, peer);
  if (why.empty()) why = move_to_rts(queue, peer);
  queue.connected = why.empty();
  return why;
}

ibv_ah_attr BareEndpoint::path_to(const Address& peer) const {
  ibv_ah_attr path{};
  path.dlid = peer.lid;
  path.port_num = port_.number;
  path.is_global = peer.link_layer == IBV_LINK_LAYER_ETHERNET ? 1 : 0;
  path.grh.sgid_index = port_.gid_index;
  path.grh.hop_limit = kHopLimit;
  std::memcpy(path.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  return path;
}

std::string BareEndpoint::move_to_rtr(Queue& queue, const Address& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(std::min(port_.address.mtu, peer.mtu));
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = reads_;
  attr.min_rnr_timer = kRnrTimer;
  attr.ah_attr = path_to(peer);
  int mask = IBV_QP_STATE;
  if (transport_ != Transport::ud) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (transport_ == Transport::rc) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = ibv_modify_qp(queue.qp.get(), &attr, mask); error != 0)
    return std::string("the peer's GID cannot be reached from ") + limits_.device + ": " +
           std::strerror(error) + " (--gid-index; is it in another subnet, without a route?)";
  if (transport_ != Transport::ud) return {};
  if (multicast_) return join_group(queue, attr.ah_attr);
  queue.peer.reset(ibv_create_ah(pd_.get(), &attr.ah_attr));
  queue.peer_qp_num = peer.qp_num;
  return queue.peer == nullptr ? "the peer's GID cannot be reached (--gid-index)" : std::string();
}

/// Attaches the queue pair to the group, and creates the handle by which datagrams are sent to the group. A
/// socket joins the same group, so that switches and this host's network forward its packets.
std::string BareEndpoint::join_group(Queue& queue, ibv_ah_attr path) {
  const auto& own = port_.address.gid;
  if (path.is_global == 0 || !std::equal(kGroup.begin(), kGroup.begin() + kIpv4At, own.begin()))
    return "multicast needs a RoCE v2 GID that is an IPv4 address (--gid-index)";
  membership_ = fabric::UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ip_mreq group{};
  std::memcpy(&group.imr_multiaddr, &kGroup[kIpv4At], sizeof group.imr_multiaddr);
  std::memcpy(&group.imr_interface, &own[kIpv4At], sizeof group.imr_interface);
  if (::setsockopt(membership_.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) != 0)
    return std::string("this host cannot join a multicast group: ") + std::strerror(errno);
  union ibv_gid gid {};
  std::memcpy(gid.raw, kGroup.data(), kGroup.size());
  if (const int error = ibv_attach_mcast(queue.qp.get(), &gid, 0); error != 0)
    return std::string("the queue pair cannot join a multicast group: ") + std::strerror(error);
  group_ = gid;
  path.grh.dgid = gid;
  queue.peer.reset(ibv_create_ah(pd_.get(), &path));
  queue.peer_qp_num = kMulticastQpn;
  return queue.peer == nullptr ? "the multicast group cannot be reached (--gid-index)" : std::string();
}

std::string BareEndpoint::move_to_rts(Queue& queue, const Address& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = kAckTimeout;
  attr.retry_cnt = kRetries;
  attr.rnr_retry = kRnrRetries;
  attr.sq_psn = queue.psn;
  attr.max_rd_atomic = std::min(reads_, peer.reads);
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (transport_ == Transport::rc)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  const int error = ibv_modify_qp(queue.qp.get(), &attr, mask);
  return error == 0 ? "" : std::string("the queue pair cannot send: ") + std::strerror(error);
}

std::string BareEndpoint::reach(const Memory& peer) {
  peer_ = peer;
  return {};
}

Memory BareEndpoint::memory() const {
  return {reinterpret_cast<std::uintptr_t>(memory_.get()), memory_bytes_, region_->rkey};
}

}  // namespace rdma_rpc::perf::bare

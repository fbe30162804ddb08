// UC and UD queue pairs of the NIC, its address handles and its multicast groups. See nic.h.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "nic/device/calls.h"

namespace rdma_rpc::nic {
namespace {

constexpr std::size_t kHeader = sizeof(ibv_grh), kIpv4Header = 20;
constexpr std::uint32_t kEveryMember = 0xffffff;

struct Ah : ibv_ah {
  ibv_ah_attr path;
};

std::byte* at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

bool same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0;
}

bool has_gid(const Nic& nic, const ibv_gid& gid) {
  return std::any_of(nic.gids.begin(), nic.gids.end(),
                     [&](const ibv_gid_entry& each) { return same(each.gid, gid); });
}

ibv_gid source_of(const Qp& qp, const Ah& ah) {
  for (const ibv_gid_entry& each : qp.nic().gids) {
    if (each.gid_index == ah.path.grh.sgid_index) return each.gid;
  }
  return {};
}

/// Returns the header in front of a datagram. On RoCE v2 over IPv4 its last bytes are the IPv4 header.
Bytes header(const ibv_gid& from, const ibv_gid& to, std::size_t payload) {
  Bytes bytes(kHeader, std::byte{0xaa});
  const auto put = [&bytes](std::size_t offset, const void* source, std::size_t length) {
    std::memcpy(bytes.data() + offset, source, length);
  };
  if (is_ipv4(from)) {
    bytes[kHeader - kIpv4Header] = std::byte{0x45};
    put(kHeader - 8, from.raw + 12, 4);
    put(kHeader - 4, to.raw + 12, 4);
    return bytes;
  }
  bytes[0] = std::byte{0x60};
  bytes[4] = static_cast<std::byte>(payload >> 8);
  bytes[5] = static_cast<std::byte>(payload);
  put(8, from.raw, sizeof from.raw);
  put(24, to.raw, sizeof to.raw);
  return bytes;
}

void take_datagram(Qp& to, const Qp& from, const ibv_send_wr& wr, const Bytes& whole) {
  std::deque<Receive>& receives = to.receive_queue();
  const bool ready = to.state == IBV_QPS_RTR || to.state == IBV_QPS_RTS || to.state == IBV_QPS_SQD;
  if (!ready || receives.empty() || wr.wr.ud.remote_qkey != to.attributes.qkey) return;
  const Receive receive = std::move(receives.front());
  receives.pop_front();
  ibv_wc wc = completion(to, receive.wr_id, IBV_WC_SUCCESS);
  wc.opcode = IBV_WC_RECV;
  wc.byte_len = static_cast<std::uint32_t>(whole.size());
  wc.src_qp = from.qp_num;
  wc.wc_flags = IBV_WC_GRH;
  if (wr.opcode == IBV_WR_SEND_WITH_IMM) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.imm_data = wr.imm_data;
  }
  if (!scatter(to, receive.sges, whole)) wc.status = IBV_WC_LOC_LEN_ERR;
  static_cast<Cq*>(to.recv_cq)->push(wc, (wr.send_flags & IBV_SEND_SOLICITED) != 0);
  if (wc.status != IBV_WC_SUCCESS) to.fail();
}

void send_datagram(const Qp& qp, const ibv_send_wr& wr, const Bytes& bytes) {
  const auto& ah = *static_cast<const Ah*>(wr.wr.ud.ah);
  const ibv_gid& gid = ah.path.grh.dgid;
  Bytes whole = header(source_of(qp, ah), gid, bytes.size());
  whole.insert(whole.end(), bytes.begin(), bytes.end());
  std::vector<Qp*> reached;
  for (const auto& [number, each] : queue_pairs()) {
    const bool member = wr.wr.ud.remote_qpn == kEveryMember &&
                        std::any_of(each->groups.begin(), each->groups.end(),
                                    [&gid](const ibv_gid& group) { return same(group, gid); });
    const bool named = number == wr.wr.ud.remote_qpn && has_gid(each->nic(), gid);
    if (each->qp_type == IBV_QPT_UD && (member || named)) reached.push_back(each);
  }
  for (Qp* each : reached) take_datagram(*each, qp, wr, whole);
}

}  // namespace

ibv_wc_status send_unreliably(Qp& qp, const ibv_send_wr& wr) {
  Bytes bytes;
  if (!gather(qp, wr, &bytes)) return IBV_WC_LOC_PROT_ERR;
  if (qp.qp_type == IBV_QPT_UD) {
    send_datagram(qp, wr, bytes);
    return IBV_WC_SUCCESS;
  }
  Qp* peer = peer_of(qp);
  if (peer == nullptr || peer->qp_type != IBV_QPT_UC) return IBV_WC_SUCCESS;
  const auto& rdma = wr.wr.rdma;
  const bool writes = wr.opcode == IBV_WR_RDMA_WRITE || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (writes) {
    if (!remote_ok(*peer, rdma.rkey, rdma.remote_addr, bytes.size(), IBV_ACCESS_REMOTE_WRITE))
      return IBV_WC_SUCCESS;
    std::copy(bytes.begin(), bytes.end(), at(rdma.remote_addr));
  }
  if (wr.opcode != IBV_WR_RDMA_WRITE && !peer->receive_queue().empty()) send_to(qp, *peer, wr, bytes);
  return IBV_WC_SUCCESS;
}

}  // namespace rdma_rpc::nic

using namespace rdma_rpc::nic;

IN_FRONT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* path) {
  const LockGuard guard(lock());
  Nic& nic = commanded(pd->context);
  const auto is_source = [path](const ibv_gid_entry& each) { return each.gid_index == path->grh.sgid_index; };
  if (path->is_global == 0 || std::none_of(nic.gids.begin(), nic.gids.end(), is_source))
    return refuse<ibv_ah>(EINVAL);
  auto* ah = new Ah{};
  ah->context = pd->context;
  ah->pd = pd;
  ah->path = *path;
  return ah;
}
IN_FRONT int ibv_destroy_ah(ibv_ah* ah) {
  delete static_cast<Ah*>(ah);
  return 0;
}
IN_FRONT int ibv_attach_mcast(ibv_qp* handle, const ibv_gid* gid, std::uint16_t) {
  const LockGuard guard(lock());
  auto& qp = *static_cast<Qp*>(handle);
  if (qp.qp_type != IBV_QPT_UD) return EINVAL;
  qp.groups.push_back(*gid);
  return 0;
}
IN_FRONT int ibv_detach_mcast(ibv_qp* handle, const ibv_gid* gid, std::uint16_t) {
  const LockGuard guard(lock());
  auto& groups = static_cast<Qp*>(handle)->groups;
  const auto found =
      std::find_if(groups.begin(), groups.end(), [gid](const ibv_gid& each) { return same(each, *gid); });
  if (found == groups.end()) return EINVAL;
  groups.erase(found);
  return 0;
}

/// The host of the tests has no network interface with the NIC's address, so its memberships of groups are
/// only counted.
IN_FRONT int setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) noexcept {
  using Set = int(int, int, int, const void*, socklen_t);
  static auto* const set = reinterpret_cast<Set*>(::dlsym(RTLD_NEXT, "setsockopt"));
  if (level != IPPROTO_IP || name != IP_ADD_MEMBERSHIP || Machine::current() == nullptr)
    return set(fd, level, name, value, bytes);
  const LockGuard guard(lock());
  const auto& request = *static_cast<const ip_mreqn*>(value);
  Machine::current()->memberships.push_back(request.imr_multiaddr.s_addr);
  return 0;
}

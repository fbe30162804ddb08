// Executes one work request: checks the keys and moves the bytes. See nic.h.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "nic/device/objects.h"

namespace rdma_rpc::nic {
namespace {

std::byte* at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

bool inside(std::uint64_t addr, std::uint64_t length, std::uint64_t from, std::uint64_t bytes) {
  return addr >= from && length <= bytes && addr - from <= bytes - length;
}

bool local_ok(const Qp& qp, const ibv_sge& sge, unsigned access) {
  const auto found = keys().regions.find(sge.lkey >> 8);
  if (found == keys().regions.end()) return false;
  const Mr& mr = *found->second;
  return mr.lkey == sge.lkey && mr.pd == qp.pd && (mr.access & access) == access &&
         inside(sge.addr, sge.length, reinterpret_cast<std::uintptr_t>(mr.addr), mr.length);
}

}  // namespace

bool remote_ok(const Qp& peer, std::uint32_t rkey, std::uint64_t addr, std::uint64_t bytes, unsigned access) {
  if (bytes == 0) return true;
  if (const auto found = keys().windows.find(rkey >> 8); found != keys().windows.end()) {
    const Mw& mw = *found->second;
    return mw.qp == &peer && mw.key == rkey && (mw.bound.mw_access_flags & access) == access &&
           inside(addr, bytes, mw.bound.addr, mw.bound.length);
  }
  const auto found = keys().regions.find(rkey >> 8);
  if (found == keys().regions.end()) return false;
  const Mr& mr = *found->second;
  return mr.rkey == rkey && mr.pd == peer.pd && (mr.access & access) == access &&
         inside(addr, bytes, reinterpret_cast<std::uintptr_t>(mr.addr), mr.length);
}

bool gather(const Qp& qp, const ibv_send_wr& wr, Bytes* bytes) {
  const bool copies = (wr.send_flags & IBV_SEND_INLINE) != 0 && qp.nic().profile.copies_inline;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (!copies && !local_ok(qp, sge, 0)) return false;
    bytes->insert(bytes->end(), at(sge.addr), at(sge.addr) + sge.length);
  }
  return true;
}

bool scatter(const Qp& qp, std::span<const ibv_sge> sges, const Bytes& bytes) {
  std::size_t done = 0;
  for (const ibv_sge& sge : sges) {
    const std::size_t part = std::min<std::size_t>(sge.length, bytes.size() - done);
    if (part == 0) continue;
    if (!local_ok(qp, sge, IBV_ACCESS_LOCAL_WRITE)) return false;
    std::memcpy(at(sge.addr), bytes.data() + done, part);
    done += part;
  }
  return done == bytes.size();
}

namespace {

/// Returns whether a packet of the message has more bytes than can pass. The retries of the packet are then
/// lost, too.
bool is_too_large(const Qp& qp, const Qp& peer, const ibv_send_wr& wr) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
  const std::uint64_t packet = std::min<std::uint64_t>(bytes, 128u << qp.attributes.path_mtu);
  return packet > qp.nic().wire_mtu || packet > peer.nic().wire_mtu;
}

void unbind(Mw& mw) {
  mw.qp = nullptr;
  mw.mr = nullptr;
}

Mw* bound_window(const Qp& qp, std::uint32_t key) {
  const auto found = keys().windows.find(key >> 8);
  return found != keys().windows.end() && found->second->qp == &qp && found->second->key == key
             ? found->second
             : nullptr;
}

}  // namespace

std::optional<ibv_wc_status> send_to(const Qp& qp, Qp& peer, const ibv_send_wr& wr, const Bytes& bytes) {
  constexpr std::uint8_t kEndless = 7;
  std::deque<Receive>& receives = peer.receive_queue();
  if (receives.empty() || peer.nic().handles_page_fault()) {
    if (qp.attributes.rnr_retry == kEndless) return std::nullopt;
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  const Receive receive = std::move(receives.front());
  receives.pop_front();
  if (auto* srq = static_cast<Srq*>(peer.srq); srq != nullptr && receives.size() < srq->limit) {
    srq->limit = 0;
    ibv_async_event event{};
    event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
    event.element.srq = srq;
    report(srq->context, event);
  }
  const bool write = wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  ibv_wc wc = completion(peer, receive.wr_id, IBV_WC_SUCCESS);
  wc.opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  wc.byte_len = static_cast<std::uint32_t>(bytes.size());
  if (write || wr.opcode == IBV_WR_SEND_WITH_IMM) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = wr.imm_data;
  }
  std::uint64_t room = 0;
  for (const ibv_sge& sge : receive.sges) room += sge.length;
  if (!write && bytes.size() > room) {
    wc.status = IBV_WC_LOC_LEN_ERR;
  } else if (!write && !scatter(peer, receive.sges, bytes)) {
    wc.status = IBV_WC_LOC_PROT_ERR;
  }
  bool refused = false;
  if (wc.status == IBV_WC_SUCCESS && wr.opcode == IBV_WR_SEND_WITH_INV) {
    Mw* window = bound_window(peer, wr.invalidate_rkey);
    if (window != nullptr) {
      unbind(*window);
      wc.wc_flags = IBV_WC_WITH_INV;
      wc.invalidated_rkey = wr.invalidate_rkey;
    } else {
      refused = true;
      wc.status = IBV_WC_LOC_ACCESS_ERR;
    }
  }
  static_cast<Cq*>(peer.recv_cq)->push(wc, (wr.send_flags & IBV_SEND_SOLICITED) != 0);
  if (wc.status == IBV_WC_SUCCESS) return wc.status;
  peer.fail();
  return refused || wc.status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
}

namespace {

ibv_wc_status bind(Qp& qp, const ibv_send_wr& wr) {
  auto& mw = *static_cast<Mw*>(wr.bind_mw.mw);
  auto* mr = static_cast<Mr*>(wr.bind_mw.bind_info.mr);
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  if (!qp.nic().profile.binds_windows || mw.qp != nullptr || wr.bind_mw.rkey >> 8 != mw.rkey >> 8 ||
      (mr->access & IBV_ACCESS_MW_BIND) == 0)
    return IBV_WC_MW_BIND_ERR;
  mw.qp = &qp;
  mw.mr = mr;
  mw.bound = info;
  mw.key = wr.bind_mw.rkey;
  return IBV_WC_SUCCESS;
}

ibv_wc_status atomic(Qp& qp, Qp& peer, const ibv_send_wr& wr) {
  const auto& with = wr.wr.atomic;
  if (!remote_ok(peer, with.rkey, with.remote_addr, 8, IBV_ACCESS_REMOTE_ATOMIC))
    return IBV_WC_REM_ACCESS_ERR;
  Bytes before(8);
  std::memcpy(before.data(), at(with.remote_addr), 8);
  std::uint64_t value = 0;
  std::memcpy(&value, before.data(), 8);
  if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    value += with.compare_add;
  } else if (value == with.compare_add) {
    value = with.swap;
  }
  std::memcpy(at(with.remote_addr), &value, 8);
  return scatter(qp, {wr.sg_list, static_cast<std::size_t>(wr.num_sge)}, before) ? IBV_WC_SUCCESS
                                                                                 : IBV_WC_LOC_PROT_ERR;
}

}  // namespace

Qp* peer_of(const Qp& qp) {
  const auto found = queue_pairs().find(qp.attributes.dest_qp_num);
  if (found == queue_pairs().end()) return nullptr;
  Qp* peer = found->second;
  if (peer->state < IBV_QPS_RTR || peer->state > IBV_QPS_SQD) return nullptr;
  const ibv_ah_attr& path = qp.attributes.ah_attr;
  if (path.is_global == 0) return path.dlid == peer->nic().port.lid ? peer : nullptr;
  const auto is_there = [&](const ibv_gid_entry& gid) {
    return std::memcmp(gid.gid.raw, path.grh.dgid.raw, sizeof gid.gid.raw) == 0;
  };
  return std::any_of(peer->nic().gids.begin(), peer->nic().gids.end(), is_there) ? peer : nullptr;
}

std::optional<ibv_wc_status> execute(Qp& qp, const ibv_send_wr& wr) {
  if (wr.opcode == IBV_WR_BIND_MW) return bind(qp, wr);
  if (wr.opcode == IBV_WR_LOCAL_INV) {
    Mw* window = bound_window(qp, wr.invalidate_rkey);
    if (window == nullptr) return IBV_WC_LOC_QP_OP_ERR;
    unbind(*window);
    return IBV_WC_SUCCESS;
  }
  if (qp.qp_type != IBV_QPT_RC) return send_unreliably(qp, wr);
  Qp* peer = peer_of(qp);
  if (peer == nullptr || is_too_large(qp, *peer, wr)) return IBV_WC_RETRY_EXC_ERR;
  ibv_wc_status status = IBV_WC_SUCCESS;
  Bytes bytes;
  const auto& rdma = wr.wr.rdma;
  switch (wr.opcode) {
    case IBV_WR_RDMA_READ: {
      std::uint64_t length = 0;
      for (int i = 0; i < wr.num_sge; ++i) length += wr.sg_list[i].length;
      if (remote_ok(*peer, rdma.rkey, rdma.remote_addr, length, IBV_ACCESS_REMOTE_READ)) {
        bytes.assign(at(rdma.remote_addr), at(rdma.remote_addr) + length);
        return scatter(qp, {wr.sg_list, static_cast<std::size_t>(wr.num_sge)}, bytes) ? status
                                                                                      : IBV_WC_LOC_PROT_ERR;
      }
      status = IBV_WC_REM_ACCESS_ERR;
      break;
    }
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      status = atomic(qp, *peer, wr);
      break;
    default:
      if (!gather(qp, wr, &bytes)) return IBV_WC_LOC_PROT_ERR;
      if (wr.opcode == IBV_WR_RDMA_WRITE || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        if (remote_ok(*peer, rdma.rkey, rdma.remote_addr, bytes.size(), IBV_ACCESS_REMOTE_WRITE)) {
          std::copy(bytes.begin(), bytes.end(), at(rdma.remote_addr));
        } else {
          status = IBV_WC_REM_ACCESS_ERR;
        }
      }
      if (status == IBV_WC_SUCCESS && wr.opcode != IBV_WR_RDMA_WRITE) return send_to(qp, *peer, wr, bytes);
  }
  if (status == IBV_WC_REM_ACCESS_ERR) peer->fail();
  return status;
}

}  // namespace rdma_rpc::nic

// Work requests of the NIC: each is checked and carried out when it is posted. See nic.h.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "fabric/suite/allocation_count.h"
#include "nic/device/objects.h"

namespace rdma_rpc::nic {
namespace {

using Bytes = std::vector<std::byte>;

/// Holds the lock. What is allocated meanwhile is not the plug-in's.
class Guard {
 public:
  ~Guard() { fabric::test::forget_allocations_since(before_); }

 private:
  std::lock_guard<std::recursive_mutex> lock_{lock()};
  std::uint64_t before_ = fabric::test::allocations_so_far();
};

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

/// Returns the peer if it is where the path leads.
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

ibv_wc completion(const Qp& qp, std::uint64_t wr_id, ibv_wc_status status) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.qp_num = qp.qp_num;
  if (status != IBV_WC_SUCCESS) wc.vendor_err = qp.nic().profile.vendor_err;
  return wc;
}

ibv_wc_status send_to(Qp& peer, const ibv_send_wr& wr, const Bytes& bytes) {
  std::deque<Receive>& receives = peer.receive_queue();
  if (receives.empty()) return IBV_WC_RNR_RETRY_EXC_ERR;
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

ibv_wc_status execute(Qp& qp, const ibv_send_wr& wr) {
  if (wr.opcode == IBV_WR_BIND_MW) return bind(qp, wr);
  if (wr.opcode == IBV_WR_LOCAL_INV) {
    Mw* window = bound_window(qp, wr.invalidate_rkey);
    if (window == nullptr) return IBV_WC_LOC_QP_OP_ERR;
    unbind(*window);
    return IBV_WC_SUCCESS;
  }
  Qp* peer = peer_of(qp);
  if (peer == nullptr) return IBV_WC_RETRY_EXC_ERR;
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
      if (status == IBV_WC_SUCCESS && wr.opcode != IBV_WR_RDMA_WRITE) return send_to(*peer, wr, bytes);
  }
  if (status == IBV_WC_REM_ACCESS_ERR) peer->fail();
  return status;
}

ibv_wc_opcode opcode_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

void take(std::deque<Receive>& receives, ibv_recv_wr* wr) {
  for (; wr != nullptr; wr = wr->next)
    receives.push_back({wr->wr_id, {wr->sg_list, wr->sg_list + wr->num_sge}});
}

}  // namespace

void Cq::push(const ibv_wc& wc, bool solicited) {
  completions.push_back(wc);
  const bool wakes =
      armed == Armed::all || (armed == Armed::solicited && (solicited || wc.status != IBV_WC_SUCCESS));
  if (!wakes || channel == nullptr) return;
  armed = Armed::no;
  static_cast<Channel*>(channel)->events.push_back(this);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(channel->fd, &one, sizeof one);
}

void Qp::fail() {
  if (state == IBV_QPS_ERR) return;
  state = IBV_QPS_ERR;
  for (const Receive& receive : receives) {
    ibv_wc wc = completion(*this, receive.wr_id, IBV_WC_WR_FLUSH_ERR);
    wc.opcode = IBV_WC_RECV;
    static_cast<Cq*>(recv_cq)->push(wc, false);
  }
  receives.clear();
  go_on();
  if (!nic().profile.peers_notice) return;
  if (Qp* peer = peer_of(*this); peer != nullptr) peer->fail();
}

/// Carries out one request, or flushes it.
void carry_out(Qp& qp, const ibv_send_wr& wr) {
  const ibv_wc_status status = qp.state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : execute(qp, wr);
  ibv_wc wc = completion(qp, wr.wr_id, status);
  wc.opcode = opcode_of(wr.opcode);
  if (status != IBV_WC_SUCCESS || qp.all_signaled || (wr.send_flags & IBV_SEND_SIGNALED) != 0)
    static_cast<Cq*>(qp.send_cq)->push(wc, false);
  if (status != IBV_WC_SUCCESS) qp.fail();
}

Held copy_of(const ibv_send_wr& wr) {
  Held held{wr, {wr.sg_list, wr.sg_list + wr.num_sge}, {}};
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return held;
  for (const ibv_sge& sge : held.sges)
    held.inline_bytes.insert(held.inline_bytes.end(), at(sge.addr), at(sge.addr) + sge.length);
  held.sges = {{reinterpret_cast<std::uintptr_t>(held.inline_bytes.data()),
                static_cast<std::uint32_t>(held.inline_bytes.size()), 0}};
  held.wr.num_sge = 1;
  return held;
}

void Qp::go_on() {
  for (; !held.empty(); held.pop_front()) {
    held.front().wr.sg_list = held.front().sges.data();
    carry_out(*this, held.front().wr);
  }
}

int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) {
  const Guard guard;
  auto& qp = *static_cast<Qp*>(handle);
  for (; wr != nullptr; wr = wr->next) {
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
      std::uint64_t bytes = 0;
      for (int i = 0; i < wr->num_sge; ++i) bytes += wr->sg_list[i].length;
      if (bytes > qp.cap.max_inline_data) return *bad = wr, EINVAL;
    }
    if (wr->num_sge > static_cast<int>(qp.cap.max_send_sge)) return *bad = wr, EINVAL;
    if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_SQD && qp.state != IBV_QPS_ERR)
      return *bad = wr, EINVAL;
    if (qp.state == IBV_QPS_SQD) {
      qp.held.push_back(copy_of(*wr));
    } else {
      carry_out(qp, *wr);
    }
    if (wr->opcode == IBV_WR_BIND_MW) wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
  }
  return 0;
}

int post_recv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const Guard guard;
  auto& qp = *static_cast<Qp*>(handle);
  if (qp.state == IBV_QPS_RESET) return *bad = wr, EINVAL;
  take(qp.receives, wr);
  if (qp.state != IBV_QPS_ERR) return 0;
  qp.state = IBV_QPS_RTS;
  qp.fail();
  return 0;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr**) {
  const Guard guard;
  take(static_cast<Srq*>(srq)->receives, wr);
  return 0;
}

int poll_cq(ibv_cq* handle, int entries, ibv_wc* out) {
  const Guard guard;
  auto& cq = *static_cast<Cq*>(handle);
  if (const int error = static_cast<Context*>(cq.context)->nic->poll_error; error != 0) return error;
  int count = 0;
  for (; count < entries && !cq.completions.empty(); cq.completions.pop_front())
    out[count++] = cq.completions.front();
  return count;
}

int req_notify_cq(ibv_cq* handle, int solicited_only) {
  const Guard guard;
  auto& cq = *static_cast<Cq*>(handle);
  cq.armed = solicited_only != 0 ? Cq::Armed::solicited : Cq::Armed::all;
  return 0;
}

}  // namespace rdma_rpc::nic

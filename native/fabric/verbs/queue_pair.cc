// See queue_pair.h.
#include "fabric/verbs/queue_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "fabric/verbs/memory.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint32_t kRemoteRights = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

std::uint64_t total(std::span<const Sge> sges) {
  std::uint64_t bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

bool bind_is_allowed(const SendWr::Bind& bind) {
  const auto* region = static_cast<const Region*>(bind.region);
  if (bind.window == nullptr || region == nullptr || (region->access() & access_mw_bind) == 0) return false;
  if ((bind.access & access_remote_write) != 0 && (region->access() & access_local_write) == 0) return false;
  // Drivers add address and length without a look at the carry.
  if (bind.length > region->length() || bind.addr < region->addr()) return false;
  return bind.addr - region->addr() <= region->length() - bind.length;
}

}  // namespace

QueuePair::QueuePair(Device& device, CompletionQueue& cq, const QpOptions& options, QpPtr qp,
                     std::uint32_t psn)
    : device_(device),
      cq_(cq),
      qp_(std::move(qp)),
      address_(device.port_address()),
      place_(device.enter(*this)),
      sends_(options.send_wr_max),
      receives_(options.recv_wr_max),
      sges_(std::size_t{kChain} * device.capabilities().max_sge) {
  qp_num_ = qp_->qp_num;
  qp_->qp_context = this;
  address_.qp_num = qp_num_;
  address_.psn = psn;
  ++device_.counts().queue_pairs;
  if (!move_to_init()) to_error();
}

QueuePair::~QueuePair() {
  device_.leave(place_);
  cq_.forget(*this);
  --device_.counts().queue_pairs;
}

bool QueuePair::move_to_init() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = device_.options().port;
  attr.qp_access_flags = kRemoteRights;
  return ibv_modify_qp(qp_.get(), &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

QpState QueuePair::state() const {
  if (state_ != QpState::rts) return state_;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  if (ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &init) != 0) return QpState::err;
  return attr.qp_state == IBV_QPS_ERR ? QpState::err : state_;
}

std::vector<std::byte> QueuePair::local_address() const { return encode(address_); }

std::string QueuePair::connect(std::span<const std::byte> remote_address) {
  if (state_ != QpState::init) return std::string("connect() in state ") + to_string(state_);
  Address peer;
  std::string why = decode(remote_address, address_, &peer);
  if (why.empty()) why = move_to_rts(peer);
  if (why.empty()) {
    state_ = QpState::rts;
  } else {
    to_error();
  }
  return why;
}

std::string QueuePair::move_to_rts(const Address& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(std::min(address_.mtu, peer.mtu));
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(address_.reads);
  attr.min_rnr_timer = device_.options().min_rnr_timer;
  attr.ah_attr.dlid = peer.lid;
  attr.ah_attr.port_num = device_.options().port;
  attr.ah_attr.is_global = address_.link_layer == IBV_LINK_LAYER_ETHERNET ? 1 : 0;
  attr.ah_attr.grh.sgid_index = device_.gid_index();
  attr.ah_attr.grh.hop_limit = kHopLimit;
  std::memcpy(attr.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  int error = ibv_modify_qp(qp_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0)
    return std::string("the peer's GID cannot be reached from ") + device_.capabilities().name + ": " +
           std::strerror(error);
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = device_.options().ack_timeout;
  attr.retry_cnt = device_.options().retry_count;
  attr.rnr_retry = 0;
  attr.sq_psn = address_.psn;
  attr.max_rd_atomic = static_cast<std::uint8_t>(
      std::clamp<std::uint32_t>(peer.reads, 1, device_.capabilities().max_rd_atomic));
  error = ibv_modify_qp(qp_.get(), &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC);
  return error == 0 ? "" : std::string("the queue pair cannot send: ") + std::strerror(error);
}

void QueuePair::to_error() {
  if (state_ == QpState::err) return;
  state_ = QpState::err;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE);
  cq_.has_failed(*this);
}

WcStatus QueuePair::check(const SendWr& wr) const {
  const Capabilities& can = device_.capabilities();
  constexpr WcStatus good = WcStatus::success, bad = WcStatus::loc_qp_op_err;
  switch (wr.opcode) {
    case Opcode::bind_mw:
      return !can.windows ? bad : bind_is_allowed(wr.bind) ? good : WcStatus::mw_bind_err;
    case Opcode::local_inv:
      return can.windows ? good : bad;
    case Opcode::rdma_read:
      return wr.inline_data || wr.sges.size() > can.max_sge_read ? bad : good;
    case Opcode::send_with_inv:
      if (!can.windows) return bad;
      break;
    case Opcode::rdma_write_with_imm:
      if (!can.immediate) return bad;
      break;
    case Opcode::send:
    case Opcode::rdma_write:
      break;
    default:
      return bad;
  }
  if (wr.sges.size() > can.max_sge) return bad;
  return wr.inline_data && total(wr.sges) > can.max_inline ? bad : good;
}

void QueuePair::convert(const SendWr& from, ibv_send_wr& to, ibv_sge* sges) {
  if (from.signaled) to.send_flags |= IBV_SEND_SIGNALED;
  if (from.inline_data) to.send_flags |= IBV_SEND_INLINE;
  if (from.fence) to.send_flags |= IBV_SEND_FENCE;
  to.sg_list = sges;
  to.num_sge = 0;
  for (const Sge& sge : from.sges) sges[to.num_sge++] = {sge.addr, sge.length, sge.lkey};
  to.wr.rdma.remote_addr = from.remote_addr;
  to.wr.rdma.rkey = from.rkey;
  switch (from.opcode) {
    case Opcode::rdma_write:
      to.opcode = IBV_WR_RDMA_WRITE;
      break;
    case Opcode::rdma_write_with_imm:
      to.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      to.imm_data = htonl(from.imm);
      break;
    case Opcode::rdma_read:
      to.opcode = IBV_WR_RDMA_READ;
      break;
    case Opcode::send_with_inv:
      to.opcode = IBV_WR_SEND_WITH_INV;
      to.invalidate_rkey = from.invalidate_rkey;
      break;
    case Opcode::local_inv:
      to.opcode = IBV_WR_LOCAL_INV;
      to.invalidate_rkey = from.invalidate_rkey;
      to.num_sge = 0;
      break;
    case Opcode::bind_mw: {
      auto* window = static_cast<Window*>(from.bind.window);
      to.opcode = IBV_WR_BIND_MW;
      to.num_sge = 0;
      to.bind_mw.mw = window->get();
      to.bind_mw.rkey = window->next_key();
      to.bind_mw.bind_info = {static_cast<const Region*>(from.bind.region)->get(), from.bind.addr,
                              from.bind.length, from.bind.access};
      break;
    }
    default:
      to.opcode = IBV_WR_SEND;
  }
}

std::size_t QueuePair::post_send(std::span<const SendWr> requests) {
  std::size_t taken = 0;
  if (state_ == QpState::init && !requests.empty()) {
    to_error();
    sends_.push_failed({requests[0].wr_id, 0, requests[0].opcode, WcStatus::loc_qp_op_err});
    taken = 1;
  }
  while (taken < requests.size() && sends_.room() > 0) {
    if (state_ == QpState::err) {
      sends_.push_failed({requests[taken].wr_id, 0, requests[taken].opcode, WcStatus::wr_flush_err});
      ++taken;
      continue;
    }
    const std::size_t count =
        std::min({requests.size() - taken, std::size_t{sends_.room()}, std::size_t{kChain}});
    post_chain(requests.subspan(taken, count));
    taken += count;
  }
  return taken;
}

void QueuePair::post_chain(std::span<const SendWr> requests) {
  // A request that fails in its turn, by a key that no region has, and so ends the queue pair after all
  // before it.
  static constexpr ibv_sge kNowhere{0, 1, 0};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const SendWr& wr = requests[i];
    ibv_send_wr& to = send_chain_[i];
    ibv_sge* sges = &sges_[i * device_.capabilities().max_sge];
    const WcStatus status = check(wr);
    to = {};
    if (status == WcStatus::success) {
      convert(wr, to, sges);
    } else {
      to.opcode = IBV_WR_SEND;
      to.send_flags = IBV_SEND_SIGNALED;
      sges[0] = kNowhere;
      to.sg_list = sges;
      to.num_sge = 1;
    }
    const std::uint32_t number =
        sends_.push_device({wr.wr_id, static_cast<std::uint32_t>(total(wr.sges)), wr.opcode, status});
    to.wr_id = std::uint64_t{place_} << 32 | number;
    to.next = i + 1 < requests.size() ? &send_chain_[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qp_.get(), send_chain_.data(), &bad) != 0 && bad != nullptr) {
    const auto first = static_cast<std::uint32_t>(bad->wr_id);
    sends_.at(first).status = WcStatus::general_err;
    for (ibv_send_wr* wr = bad->next; wr != nullptr; wr = wr->next) {
      sends_.at(static_cast<std::uint32_t>(wr->wr_id)).status = WcStatus::wr_flush_err;
    }
    sends_.take_back(first);
    to_error();
  }
  // The library reads the old key while it posts.
  for (const SendWr& wr : requests) {
    if (wr.opcode == Opcode::bind_mw && wr.bind.window != nullptr) {
      static_cast<Window*>(wr.bind.window)->get()->rkey = wr.bind.window->rkey();
    }
  }
}

std::size_t QueuePair::post_recv(std::span<const RecvWr> requests) {
  std::size_t taken = 0;
  const std::size_t room = std::min(requests.size(), std::size_t{receives_.room()});
  for (; taken < room && state_ == QpState::err; ++taken) {
    receives_.push_failed({requests[taken].wr_id, 0, Opcode::recv, WcStatus::wr_flush_err});
  }
  while (taken < room) {
    const std::size_t count = std::min(room - taken, std::size_t{kChain});
    for (std::size_t i = 0; i < count; ++i) {
      const RecvWr& wr = requests[taken + i];
      sges_[i] = {wr.sge.addr, wr.sge.length, wr.sge.lkey};
      const std::uint32_t number = receives_.push_device({wr.wr_id, 0, Opcode::recv, WcStatus::success});
      recv_chain_[i] = {kReceive | std::uint64_t{place_} << 32 | number,
                        i + 1 < count ? &recv_chain_[i + 1] : nullptr, &sges_[i], wr.sge.length > 0 ? 1 : 0};
    }
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(qp_.get(), recv_chain_.data(), &bad) != 0 && bad != nullptr) {
      for (ibv_recv_wr* wr = bad; wr != nullptr; wr = wr->next) {
        receives_.at(static_cast<std::uint32_t>(wr->wr_id)).status = WcStatus::wr_flush_err;
      }
      receives_.take_back(static_cast<std::uint32_t>(bad->wr_id));
      to_error();
      return taken + count;
    }
    taken += count;
  }
  return taken;
}

std::size_t QueuePair::poll_failed(std::span<Wc> out) {
  std::size_t count = 0;
  for (WorkQueue* queue : {&sends_, &receives_}) {
    for (Entry* entry; count < out.size() && (entry = queue->next_failed()) != nullptr; queue->pop_failed()) {
      out[count] = {};
      out[count].wr_id = entry->wr_id;
      out[count].status = entry->status;
      out[count].opcode = entry->opcode;
      out[count++].qp_num = qp_num_;
    }
  }
  return count;
}

}  // namespace rdma_rpc::fabric::verbs

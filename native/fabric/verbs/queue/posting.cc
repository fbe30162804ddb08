// Posts the requests of a queue pair to the device, many with one doorbell. See queue_pair.h. This code is
// the hot path. It allocates nothing, takes no lock of ours, and makes no system call except those of the
// driver.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::uint64_t kAtomicBytes = sizeof(std::uint64_t);

}  // namespace

WcStatus QueuePair::check(const SendWr& wr, std::uint64_t bytes) const {
  const Capabilities& can = device_.capabilities();
  constexpr WcStatus good = WcStatus::success, bad = WcStatus::loc_qp_op_err;
  if (type_ != QpType::rc) {
    if (const WcStatus status = check_unreliable(wr, bytes); status != good) return status;
  }
  switch (wr.opcode) {
    case Opcode::send:
    case Opcode::rdma_write:
      break;
    case Opcode::send_with_imm:
      if (!can.send_immediate) return bad;
      break;
    // Some drivers accept a wrong length or address, and others do not say which of them is wrong.
    case Opcode::atomic_cmp_and_swp:
    case Opcode::atomic_fetch_and_add:
      return can.atomics && !wr.inline_data && wr.sges.size() == 1 && bytes == kAtomicBytes &&
                     wr.remote_addr % kAtomicBytes == 0
                 ? good
                 : bad;
    case Opcode::rdma_read:
      return wr.inline_data || wr.sges.size() > std::min(can.max_sge_read, room_.sges) ? bad : good;
    case Opcode::send_with_inv:
      if (!can.windows) return bad;
      break;
    case Opcode::rdma_write_with_imm:
      if (!can.immediate) return bad;
      break;
    case Opcode::bind_mw:
      return can.windows ? check_bind(wr.bind) : bad;
    case Opcode::local_inv: {
      // Soft-RoCE crashes when the window is not bound.
      const Window* window = device_.windows().find(wr.invalidate_rkey);
      return window != nullptr && window->queue_pair() == this ? good : bad;
    }
    default:
      return bad;
  }
  if (wr.sges.size() > room_.sges) return bad;
  return wr.inline_data && bytes > room_.inline_bytes ? bad : good;
}

WcStatus QueuePair::check_bind(const SendWr::Bind& bind) const {
  constexpr WcStatus bad = WcStatus::mw_bind_err;
  const auto* region = static_cast<const Region*>(bind.region);
  const auto* window = static_cast<const Window*>(bind.window);
  if (window == nullptr || region == nullptr || (region->access() & access_mw_bind) == 0) return bad;
  if (window->queue_pair() != nullptr || window->get() == nullptr) return bad;
  if ((bind.access & access_remote_write) != 0 && (region->access() & access_local_write) == 0) return bad;
  // Drivers add address and length without a check for overflow, so this code checks.
  if (bind.length > region->length() || bind.addr < region->addr()) return bad;
  return bind.addr - region->addr() <= region->length() - bind.length ? WcStatus::success : bad;
}

void QueuePair::convert(const SendWr& from, ibv_send_wr& to, ibv_sge* sges) {
  if (from.signaled || type_ != QpType::rc) to.send_flags |= IBV_SEND_SIGNALED;
  if (from.inline_data) to.send_flags |= IBV_SEND_INLINE;
  if (from.fence) to.send_flags |= IBV_SEND_FENCE;
  if (from.solicited) to.send_flags |= IBV_SEND_SOLICITED;
  to.sg_list = sges;
  for (const Sge& sge : from.sges) {
    // InfiniBand interprets an empty entry as one of 2 GiB, and with soft-iWARP such an entry crashes the
    // kernel.
    if (sge.length > 0) sges[to.num_sge++] = {sge.addr, sge.length, sge.lkey};
  }
  if (type_ == QpType::ud) {
    // Some devices do not replace a Q_Key with its top bit set by that of the sender.
    const std::uint32_t qkey = (from.ud.remote_qkey >> 31) != 0 ? qkey_ : from.ud.remote_qkey;
    to.wr.ud = {static_cast<const AddressHandle*>(from.ud.ah)->get(), from.ud.remote_qpn, qkey};
  } else {
    to.wr.rdma.remote_addr = from.remote_addr;
    to.wr.rdma.rkey = from.rkey;
  }
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
    case Opcode::send_with_imm:
      to.opcode = IBV_WR_SEND_WITH_IMM;
      to.imm_data = htonl(from.imm);
      break;
    case Opcode::atomic_cmp_and_swp:
    case Opcode::atomic_fetch_and_add:
      to.opcode =
          from.opcode == Opcode::atomic_cmp_and_swp ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
      to.wr.atomic = {from.remote_addr, from.atomic.compare_add, from.atomic.swap, from.rkey};
      break;
    case Opcode::send_with_inv:
      to.opcode = IBV_WR_SEND_WITH_INV;
      to.invalidate_rkey = from.invalidate_rkey;
      break;
    case Opcode::local_inv:
      to.opcode = IBV_WR_LOCAL_INV;
      to.invalidate_rkey = from.invalidate_rkey;
      device_.windows().find(from.invalidate_rkey)->unbind_by(sends_.next());
      break;
    case Opcode::bind_mw: {
      auto* window = static_cast<Window*>(from.bind.window);
      const auto* region = static_cast<const Region*>(from.bind.region);
      to.opcode = IBV_WR_BIND_MW;
      to.bind_mw.mw = window->get();
      to.bind_mw.rkey = window->bind(*this, *region);
      to.bind_mw.bind_info = {region->get(), from.bind.addr, from.bind.length, from.bind.access};
      break;
    }
    default:
      to.opcode = IBV_WR_SEND;
  }
}

std::size_t QueuePair::post_send(std::span<const SendWr> requests) {
  std::size_t taken = 0;
  if (state_ == QpState::reset || state_ == QpState::init || state_ == QpState::rtr) return taken;
  // After SQE, new requests are accepted only when all flushed requests have been polled.
  if (type_ != QpType::rc && state_ == QpState::rts && sends_.holds_some()) return taken;
  device_.watchdog().posted();
  while (taken < requests.size() && sends_.room() > 0) {
    // (Without a queue pair, finish_flush() has already run and ends everything that is left.)
    // (With shared receives, finish_flush() ends these requests, after it has handled the receives.)
    if (state_ == QpState::err && qp_ != nullptr && shared_ == nullptr && type_ == QpType::rc &&
        sends_.last_unknown()) {
      post_drain(requests[taken++]);
      continue;
    }
    if (state_ == QpState::err || state_ == QpState::sqe) {
      sends_.push_failed({requests[taken].wr_id, 0, requests[taken].opcode, WcStatus::wr_flush_err});
      ++taken;
      continue;
    }
    std::size_t count = std::min({requests.size() - taken, std::size_t{sends_.room()}, std::size_t{kChain}});
    if (type_ != QpType::rc) {
      count = leading_good(requests.subspan(taken, count));
      if (count == 0) {
        refuse(requests[taken++]);
        continue;
      }
    }
    if (workaround_ != nullptr) {
      count = workaround_->may_post(requests.subspan(taken, count));
      if (count == 0) {
        workaround_->hold(requests[taken++]);
        continue;
      }
    }
    taken += post_chain(requests.subspan(taken, count));
  }
  return taken;
}

/// The device's last requests may be complete although they have no completion, because they were unsignaled.
/// Therefore the first request that is posted in ERR still goes to the device, which flushes it after the
/// earlier requests.
void QueuePair::post_drain(const SendWr& request) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  const std::uint32_t number = sends_.push_device({request.wr_id, 0, request.opcode, WcStatus::wr_flush_err});
  wr.wr_id = id_of(number);
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qp_.get(), &wr, &bad) != 0) sends_.flush_all();
}

Entry QueuePair::prepare(const SendWr& wr, ibv_send_wr& to, ibv_sge* sges) {
  const std::uint64_t bytes = total(wr.sges);
  const WcStatus status = check(wr, bytes);
  to = {};
  if (status == WcStatus::success) {
    convert(wr, to, sges);
  } else {
    // This request has a key that no region has. Therefore it fails when the device reaches it, and ends the
    // queue pair after all requests before it.
    static constexpr ibv_sge kNowhere{0, 1, 0};
    to.opcode = IBV_WR_SEND;
    to.send_flags = IBV_SEND_SIGNALED;
    sges[0] = kNowhere;
    to.sg_list = sges;
    to.num_sge = 1;
  }
  return {wr.wr_id, static_cast<std::uint32_t>(bytes), wr.opcode, status, wr.signaled};
}

std::string QueuePair::why_not_posted(int error) const {
  return device_.capabilities().name + " does not take a request: " + std::strerror(error);
}

void QueuePair::ask_for_last_packet() {
  const std::uint32_t number = sends_.push_internal({.opcode = Opcode::rdma_write, .internal = true});
  if (workaround_ != nullptr) workaround_->packet_posted(number);
  post_empty_write(number, IBV_SEND_SIGNALED);
}

void QueuePair::post_empty_write(std::uint32_t number, unsigned flags) {
  ibv_send_wr wr{};
  wr.wr_id = id_of(number);
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = flags;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_.get(), &wr, &bad); error != 0) fail(why_not_posted(error));
}

std::size_t QueuePair::post_chain(std::span<const SendWr> requests) {
  std::size_t count = 0;
  bool binds = false;
  for (const SendWr& wr : requests) {
    // The library reads a window's old key while it posts, so a chain may contain only one bind of each
    // window.
    const auto* window = wr.opcode == Opcode::bind_mw ? static_cast<Window*>(wr.bind.window) : nullptr;
    if (window != nullptr && window->get() != nullptr && window->in_chain()) break;
    binds |= window != nullptr;
    ibv_sge* sges = &sges_[count * room_.sges];
    ibv_send_wr& to = send_chain_[count++];
    const std::uint32_t number = sends_.push_device(prepare(wr, to, sges));
    to.wr_id = id_of(number);
    to.next = &send_chain_[count];
  }
  send_chain_[count - 1].next = nullptr;
  if (workaround_ != nullptr) {
    const auto first = static_cast<std::uint32_t>(send_chain_[0].wr_id);
    workaround_->amend(requests.first(count), first, {send_chain_.data(), count});
  }
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_.get(), send_chain_.data(), &bad); error != 0) {
    if (bad != nullptr) {
      const auto first = static_cast<std::uint32_t>(bad->wr_id);
      sends_.at(first).status = WcStatus::general_err;
      for (ibv_send_wr* wr = bad->next; wr != nullptr; wr = wr->next) {
        sends_.at(static_cast<std::uint32_t>(wr->wr_id)).status = WcStatus::wr_flush_err;
      }
      sends_.rewind(first);
    }
    // When no request is at fault, the doorbell has failed. The doorbell of soft-RoCE is a system call, which
    // the kernel refuses after the process has changed its credentials.
    fail(why_not_posted(error));
  }
  for (const SendWr& wr : requests.first(binds ? count : 0)) {
    auto* window = wr.opcode == Opcode::bind_mw ? static_cast<Window*>(wr.bind.window) : nullptr;
    if (window != nullptr && window->get() != nullptr) window->posted();
  }
  return count;
}

std::size_t QueuePair::post_recv(std::span<const RecvWr> requests) {
  std::size_t taken = 0;
  if (state_ == QpState::reset) return taken;
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
      recv_chain_[i] = {kReceive | std::uint64_t{slot_} << 32 | number,
                        i + 1 < count ? &recv_chain_[i + 1] : nullptr, &sges_[i], wr.sge.length > 0 ? 1 : 0};
    }
    if (workaround_ != nullptr) workaround_->amend({recv_chain_.data(), count});
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(qp_.get(), recv_chain_.data(), &bad); error != 0 && bad != nullptr) {
      for (ibv_recv_wr* wr = bad; wr != nullptr; wr = wr->next) {
        receives_.at(static_cast<std::uint32_t>(wr->wr_id)).status = WcStatus::wr_flush_err;
      }
      receives_.rewind(static_cast<std::uint32_t>(bad->wr_id));
      fail(why_not_posted(error));
      return taken + count;
    }
    taken += count;
  }
  return taken;
}

}  // namespace rdma_rpc::fabric::verbs

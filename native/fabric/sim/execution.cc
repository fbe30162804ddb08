// Executes one request: first the checks that a NIC makes, then the copy. This file is part of SimQueuePair;
// only its progress() calls this code. Bytes are copied only after every check has passed.
#include <algorithm>
#include <cstring>

#include "fabric/sim/queue_pair.h"
#include "fabric/software/requests.h"

namespace rdma_rpc::fabric {
namespace {

std::byte* at(std::uint64_t addr) { return reinterpret_cast<std::byte*>(addr); }

// memmove is needed, because two queue pairs of one process may name overlapping memory.
void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (bytes > 0) std::memmove(at(to), at(from), bytes);
}

}  // namespace

// Returns success, or the status with which a request ends when the peer would not answer.
WcStatus SimQueuePair::peer_fault() const {
  if (peer_ == nullptr) return peer_gone_as_;
  if (peer_->killed_) return peer_->seen_by_peers_;
  if (peer_->state_ == QpState::err || peer_->peer_ != this) return WcStatus::retry_exc_err;
  return WcStatus::success;
}

// Returns true when one-sided requests still move bytes to the peer although it will not answer. This is the
// case when the peer is in ERR and not yet flushed.
bool SimQueuePair::peer_still_lands() const {
  return peer_ != nullptr && peer_->peer_ == this && !peer_->killed_ && peer_->state_ == QpState::err &&
         world_.now() < peer_->flush_at_;
}

// This function is called when the peer has found a fault in a request. The peer goes to ERR, after it has
// answered the READs before that request.
WcStatus SimQueuePair::found_by_the_peer(WcStatus status) {
  carry_out_reads(true);
  if (peer_ != nullptr) peer_->enter_error();
  return status;
}

WcStatus SimQueuePair::begin(SendSlot& slot) {
  const SendWr& wr = slot.wr;
  const WcStatus injected = world_.faults.match(wr.opcode, qp_num_, &device_);
  if (injected != WcStatus::success) {
    const bool found_by_peer = injected == WcStatus::rem_access_err || injected == WcStatus::rem_inv_req_err;
    return found_by_peer ? found_by_the_peer(injected) : injected;
  }
  // On iWARP the passive side must not send first, because the connection would break.
  const bool talks = wr.opcode != Opcode::bind_mw && wr.opcode != Opcode::local_inv;
  if (talks && device_.capabilities().active_side_sends_first && !options_.active && received_ == 0) {
    return WcStatus::loc_qp_op_err;
  }
  ++world_.counters.carried_out[static_cast<std::size_t>(wr.opcode)];
  if (options_.type != QpType::rc && talks) return dispatch(slot);
  switch (wr.opcode) {
    case Opcode::send:
    case Opcode::send_with_imm:
    case Opcode::send_with_inv:
      return send_to_peer(slot);
    case Opcode::rdma_write:
    case Opcode::rdma_write_with_imm:
      return write_to_peer(slot);
    case Opcode::bind_mw:
      return device_.protection.keys.bind(slot.bind, qp_num_);
    case Opcode::local_inv:
      return invalidate_window(wr.invalidate_rkey);
    case Opcode::rdma_read:
    case Opcode::atomic_cmp_and_swp:
    case Opcode::atomic_fetch_and_add:
      return begin_read(slot);
    case Opcode::recv:
    case Opcode::recv_rdma_with_imm:
      break;
  }
  return WcStatus::loc_qp_op_err;  // was already refused when posted
}

WcStatus SimQueuePair::begin_read(SendSlot& slot) {
  const SendWr& wr = slot.wr;
  const bool remote_write = device_.capabilities().read_sink_needs_remote_write;
  const std::uint32_t access = access_local_write | (remote_write ? access_remote_write : 0u);
  for (const Sge& sge : wr.sges) {
    if (!slot.abandoned && !device_.protection.keys.local_ok(sge, access)) return WcStatus::loc_prot_err;
  }
  std::uint32_t bytes = 0;
  for (const Sge& sge : wr.sges) bytes += sge.length;
  // A real peer of such a device would return wrong bytes.
  if (wr.opcode == Opcode::rdma_read && bytes <= device_.capabilities().one_page_read_max &&
      on_page(wr.remote_addr, bytes) != bytes)
    return WcStatus::loc_qp_op_err;
  if (!world_.scheduled()) return read_from_peer(slot);
  if (const WcStatus fault = peer_fault(); fault != WcStatus::success) return fault;
  if (!read_ok(slot)) return found_by_the_peer(WcStatus::rem_access_err);
  last_read_ns_ = std::max(last_read_ns_, world_.now() + world_.read_extra());  // READs are answered in order
  slot.phase = Phase::reading;
  slot.due_at = last_read_ns_;
  ++reads_waiting_;
  world_.wake(*this, slot.due_at);
  return WcStatus::success;
}

bool SimQueuePair::gather_ok(const SendSlot& slot) const {
  if (slot.wr.inline_data) return true;
  for (const Sge& sge : slot.wr.sges) {
    if (!device_.protection.keys.local_ok(sge, 0)) return false;
  }
  return true;
}

void SimQueuePair::gather(const SendSlot& slot, std::uint64_t to) const {
  for (const Sge& sge : slot.wr.sges) {
    // Memory that its owner has taken away after the post is not read. The user checks the memory before it
    // posts.
    if (slot.wr.inline_data || device_.protection.keys.present(sge.lkey)) copy(to, sge.addr, sge.length);
    to += sge.length;
  }
}

// The oldest receive of the peer cannot take the message. The receive fails, and the sender gets the status.
WcStatus SimQueuePair::fail_receive(WcStatus status) {
  carry_out_reads(true);
  peer_->complete_receive({.wr_id = peer_->receives_.oldest().wr_id, .status = status});
  return found_by_the_peer(WcStatus::rem_inv_req_err);
}

WcStatus SimQueuePair::send_to_peer(const SendSlot& slot) {
  if (!gather_ok(slot)) return WcStatus::loc_prot_err;
  if (const WcStatus fault = peer_fault(); fault != WcStatus::success) return fault;
  SimQueuePair& peer = *peer_;
  if (peer.receives_.is_empty()) return WcStatus::rnr_retry_exc_err;

  const RecvWr& receive = peer.receives_.oldest();
  if (slot.bytes > receive.sge.length) return fail_receive(WcStatus::loc_len_err);
  if (!peer.device_.protection.keys.local_ok(receive.sge, access_local_write)) {
    return fail_receive(WcStatus::loc_prot_err);
  }
  const WcStatus injected = world_.faults.match(Opcode::recv, peer.qp_num_, &peer.device_);
  if (injected != WcStatus::success) return fail_receive(injected);
  Wc wc{.wr_id = receive.wr_id, .bytes = static_cast<std::uint32_t>(slot.bytes)};
  if (slot.wr.opcode == Opcode::send_with_imm) {
    wc.has_imm = true;
    wc.imm = slot.wr.imm;
  }
  if (slot.wr.opcode == Opcode::send_with_inv) {
    wc.invalidated_rkey = slot.wr.invalidate_rkey;
    if (peer.invalidate_window(wc.invalidated_rkey) != WcStatus::success) {
      return fail_receive(WcStatus::rem_inv_req_err);
    }
  }
  gather(slot, receive.sge.addr);
  ++world_.counters.carried_out[static_cast<std::size_t>(Opcode::recv)];
  peer.complete_receive(wc, slot.wr.solicited);
  return WcStatus::success;
}

WcStatus SimQueuePair::write_to_peer(const SendSlot& slot) {
  if (!gather_ok(slot)) return WcStatus::loc_prot_err;
  const SendWr& wr = slot.wr;
  const WcStatus fault = peer_fault();
  if (fault != WcStatus::success && !peer_still_lands()) return fault;
  SimQueuePair& peer = *peer_;
  // As on InfiniBand, a request of 0 bytes is not checked, because it accesses nothing.
  if (slot.bytes > 0 && !peer.device_.protection.keys.remote_ok(wr.rkey, peer.qp_num_, wr.remote_addr,
                                                                slot.bytes, access_remote_write)) {
    return found_by_the_peer(WcStatus::rem_access_err);
  }
  const bool with_imm = wr.opcode == Opcode::rdma_write_with_imm;
  if (with_imm && fault == WcStatus::success && peer.receives_.is_empty()) {
    return WcStatus::rnr_retry_exc_err;
  }
  if (!peer.device_.protection.keys.is_revoked(wr.rkey)) gather(slot, wr.remote_addr);
  if (with_imm && fault == WcStatus::success) {
    peer.complete_receive({.wr_id = peer.receives_.oldest().wr_id,
                           .opcode = Opcode::recv_rdma_with_imm,
                           .has_imm = true,
                           .bytes = static_cast<std::uint32_t>(slot.bytes),
                           .imm = wr.imm},
                          wr.solicited);
  }
  return fault;
}

bool SimQueuePair::read_ok(const SendSlot& slot) const {
  const SendWr& wr = slot.wr;
  const std::uint32_t access = software::is_atomic(wr.opcode) ? access_remote_atomic : access_remote_read;
  return slot.bytes == 0 || peer_->device_.protection.keys.remote_ok(wr.rkey, peer_->qp_num_, wr.remote_addr,
                                                                     slot.bytes, access);
}

/// Scheduled mode: reads the word of an atomic that is due, and returns true until it is time to store the
/// new value.
bool SimQueuePair::must_wait_to_update(SendSlot& slot) {
  if (!world_.scheduled() || slot.updating || peer_fault() != WcStatus::success || !read_ok(slot))
    return false;
  const SendWr& wr = slot.wr;
  if (slot.abandoned || !peer_->device_.protection.keys.present(wr.rkey)) return false;
  SimDevice::Update& update = peer_->device_.update;
  if (update.pending && update.ends_at > world_.now()) {
    slot.due_at = update.ends_at;
  } else {
    peer_->device_.finish_update();
    slot.due_at = world_.now() + world_.read_extra();
    slot.updating = true;
    std::memcpy(&slot.before, at(wr.remote_addr), sizeof slot.before);
    const bool adds = wr.opcode == Opcode::atomic_fetch_and_add;
    update = {.pending = true,
              .stores = adds || slot.before == wr.atomic.compare_add,
              .ends_at = slot.due_at,
              .key = wr.rkey,
              .qp_num = peer_->qp_num_,
              .addr = wr.remote_addr,
              .value = adds ? slot.before + wr.atomic.compare_add : wr.atomic.swap};
  }
  last_read_ns_ = std::max(last_read_ns_, slot.due_at);
  world_.wake(*this, slot.due_at);
  return true;
}

/// Executes the rest of an atomic. Returns the previous value.
std::uint64_t SimQueuePair::update_peer(const SendSlot& slot) {
  peer_->device_.finish_update();
  if (slot.updating) return slot.before;
  return software::update(reinterpret_cast<std::uint64_t*>(slot.wr.remote_addr), slot.wr.opcode,
                          slot.wr.atomic);
}

WcStatus SimQueuePair::read_from_peer(SendSlot& slot) {
  const WcStatus fault = peer_fault();
  if (fault != WcStatus::success && !peer_still_lands()) return fault;
  const SendWr& wr = slot.wr;
  // The right is checked again, because in scheduled mode the key may have ended since the READ began. The
  // READs before it have been answered.
  if (!read_ok(slot)) {
    peer_->enter_error();
    return WcStatus::rem_access_err;
  }
  slot.memory_gone = slot.abandoned || !peer_->device_.protection.keys.present(wr.rkey);
  if (slot.memory_gone) return fault;
  std::uint64_t from = wr.remote_addr, before = 0;
  if (software::is_atomic(wr.opcode)) {
    before = update_peer(slot);
    from = reinterpret_cast<std::uintptr_t>(&before);
  }
  for (const Sge& sge : wr.sges) {
    if (!device_.protection.keys.local_ok(sge, access_local_write)) return WcStatus::loc_prot_err;
    copy(sge.addr, from, sge.length);
    from += sge.length;
  }
  return fault;
}

bool SimQueuePair::revoke(std::uint32_t rkey) {
  return device_.capabilities().reads_memory_late && device_.protection.keys.revoke(rkey, qp_num_);
}

bool SimQueuePair::abandon_reads(std::uint64_t addr, std::uint64_t bytes) {
  if (!device_.capabilities().reads_memory_late) return false;
  for (std::uint64_t i = sends_.retired; i != sends_.posted; ++i) {
    SendSlot& slot = send_slot(i);
    if (!software::brings_bytes(slot.wr.opcode) || slot.phase == Phase::done) continue;
    for (const Sge& sge : slot.wr.sges) {
      if (sge.addr < addr + bytes && addr < sge.addr + sge.length) slot.abandoned = true;
    }
  }
  return true;
}

WcStatus SimQueuePair::invalidate_window(std::uint32_t key) {
  return device_.protection.keys.invalidate(key, qp_num_) ? WcStatus::success : WcStatus::loc_qp_op_err;
}

}  // namespace rdma_rpc::fabric

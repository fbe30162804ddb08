// This file implements post_send. Each request is executed before the next one is looked at. The hot path is
// send() → publish(). This path writes one cell, and reads shared lines only when the known receives of the
// peer are used up. See queue_pair.h.
#include <cstring>

#include "fabric/shm/memory/regions.h"
#include "fabric/shm/queue/queue_pair.h"
#include "fabric/software/requests.h"

namespace rdma_rpc::fabric::shm {
namespace {

/// Limit of bytes of a message that are prefetched for writing. memcpy() writes longer messages with `rep
/// movsb`, which fetches its lines faster by itself (glibc from 2,112 bytes on; with a prefetch, 8,000 bytes
/// took 1.17 times as long).
constexpr std::uint32_t kWrittenAheadMax = 2048;

/// After an unsuccessful check for a new epoch, the next check follows after this number of epoch lengths.
constexpr std::uint64_t kEpochsBetweenLooks = 4;

using software::is_send;
using software::is_write;

}  // namespace

void QueuePair::expect_posts() const {
  if (peer_ == nullptr) return;
  prefetch(&peer_cells_[epoch_sent_ & peer_cell_mask_], 2 * sizeof(Cell));
  if (epoch_sent_ >= epoch_look_) prefetch(&peer_cells_[0], 2 * sizeof(Cell));
  prefetch(&peer_->state);
}

std::size_t QueuePair::post_send(std::span<const SendWr> requests) {
  std::size_t taken = 0;
  if (state_ == QpState::init || state_ == QpState::rtr) return taken;
  if (prefetches_receives_) prefetch_receives(requests);
  for (const SendWr& wr : requests) {
    if (send_posted_ - send_done_ == options_.send_wr_max) break;
    ++send_posted_;
    ++taken;
    execute(wr);
  }
  if (state_ == QpState::rts && taken > 0) ring_doorbell(requests.first(taken));
  if (completions_head_ != completions_tail_) cq_.note(*this);
  return taken;
}

/// Prefetches the receives into which the messages of this batch will be copied. The peer has read their
/// earlier content, so their lines are in its CPU's cache. The lines of the whole batch are fetched at once
/// instead of one after the other. The function is not inlined, and is called only while such messages are
/// sent. Messages that fit the cells therefore do not pay for this function.
[[gnu::noinline]] void QueuePair::prefetch_receives(std::span<const SendWr> requests) {
  prefetches_receives_ = false;
  std::uint32_t number = sent_;
  for (const SendWr& wr : requests) {
    if (state_ != QpState::rts || wr.opcode != Opcode::send || number == peer_posted_) return;
    const PostedReceive& receive = peer_receives_[number++ & peer_receive_mask_];
    if (wr.inline_data || wr.sges.size() != 1) continue;
    const std::uint32_t bytes = wr.sges[0].length;
    if (bytes <= kInlineMax || bytes > kWrittenAheadMax) continue;
    RemoteRange range;
    const std::uint64_t addr = receive.addr.load(std::memory_order_relaxed);
    const std::uint32_t memory = receive.memory.load(std::memory_order_relaxed);
    if (remote_->resolve(memory, addr, bytes, &range) && range.mapped != nullptr)
      prefetch_to_write(range.mapped, bytes);
  }
}

void QueuePair::execute(const SendWr& wr) {
  Outcome outcome;
  if (state_ != QpState::rts) {
    outcome.status = WcStatus::wr_flush_err;
  } else {
    switch (wr.opcode) {
      case Opcode::send:
      case Opcode::send_with_imm:
      case Opcode::send_with_inv:
        outcome = send(wr);
        break;
      case Opcode::rdma_write:
      case Opcode::rdma_write_with_imm:
        outcome = transfer(wr, Direction::write);
        break;
      case Opcode::rdma_read:
        outcome = transfer(wr, Direction::read);
        break;
      case Opcode::atomic_cmp_and_swp:
      case Opcode::atomic_fetch_and_add:
        outcome = atomic(wr);
        break;
      case Opcode::bind_mw:
        outcome.status = bind(wr);
        break;
      case Opcode::local_inv:
        outcome.status = invalidate(wr);
        break;
      default:
        outcome.status = WcStatus::loc_qp_op_err;
    }
  }
  if (wr.signaled || outcome.status != WcStatus::success) complete_send(wr, outcome);
}

void QueuePair::complete_send(const SendWr& wr, Outcome outcome) {
  completions_[completions_tail_++ & completion_mask_] = {wr.wr_id,       send_posted_, outcome.bytes,
                                                          outcome.status, wr.opcode,    outcome.memory_gone};
  switch (outcome.status) {
    case WcStatus::success:
      return;
    case WcStatus::rem_access_err:
      return enter_error(SharedState::fault);
    default:
      // After rem_inv_req_err, too, the peer sees the message, and its receive completes with that error.
      return enter_error(SharedState::error);
  }
}

WcStatus QueuePair::check_sges(const SendWr& wr, std::uint32_t sges_max, std::uint32_t access,
                               std::uint64_t* bytes) const {
  if (wr.sges.size() > sges_max) return WcStatus::loc_qp_op_err;
  std::uint64_t total = 0;
  for (const Sge& sge : wr.sges) total += sge.length;
  *bytes = total;
  if (wr.inline_data) {
    return (is_send(wr.opcode) || is_write(wr.opcode)) && total <= kInlineMax ? WcStatus::success
                                                                              : WcStatus::loc_qp_op_err;
  }
  if (total > device_.capabilities().max_msg_bytes) return WcStatus::loc_len_err;
  for (const Sge& sge : wr.sges) {
    if (sge.length == 0) continue;
    const KeyEntry* region = device_.table().find(sge.lkey, ProtectionTable::Kind::region);
    if (region == nullptr || (region->access & access) != access || !region->covers(sge.addr, sge.length)) {
      return WcStatus::loc_prot_err;
    }
  }
  return WcStatus::success;
}

WcStatus QueuePair::peer_fault() const {
  switch (static_cast<SharedState>(peer_->state.load(std::memory_order_seq_cst))) {
    case SharedState::live:
      return WcStatus::success;
    case SharedState::closed:
      return WcStatus::rem_abort_err;
    default:
      return WcStatus::retry_exc_err;
  }
}

bool QueuePair::peer_has_receive() {
  if (sent_ != peer_posted_) return true;
  peer_posted_ = peer_->posted.load(std::memory_order_acquire);
  peer_shortest_receive_ = peer_->shortest_receive.load(std::memory_order_relaxed);
  // A number beyond the size of the peer's ring is a lie. If this side believed a false value, messages would
  // overrun the ring, which harms only the peer that lied.
  return sent_ != peer_posted_ && peer_posted_ - sent_ <= peer_receive_mask_ + 1;
}

/// Finds the kind of a SEND that contains a word (an immediate or a key), and finds that word. Returns
/// loc_qp_op_err when the peer's build does not know this kind of message, and rem_inv_req_err when the peer
/// will not accept the message.
WcStatus QueuePair::find_word(const SendWr& wr, CellKind* kind, std::uint32_t* word) const {
  if (wr.opcode == Opcode::send_with_imm) {
    *kind = CellKind::send_with_imm;
    *word = wr.imm;
    return (peer_features_ & feature_send_with_imm) != 0 ? WcStatus::success : WcStatus::loc_qp_op_err;
  }
  *kind = CellKind::send_with_inv;
  *word = wr.invalidate_rkey;
  const TableKey& entry = remote_->entry(wr.invalidate_rkey);
  const bool known = wr.invalidate_rkey != 0 &&
                     entry.key.load(std::memory_order_acquire) == wr.invalidate_rkey &&
                     entry.qp_num.load(std::memory_order_relaxed) == peer_qp_num_;
  return known ? WcStatus::success : WcStatus::rem_inv_req_err;
}

QueuePair::Outcome QueuePair::send(const SendWr& wr) {
  std::uint64_t total = 0;
  WcStatus status = check_sges(wr, device_.capabilities().max_sge, 0, &total);
  if (status != WcStatus::success) return {status, 0};
  status = peer_fault();
  if (status != WcStatus::success) return {status, 0};
  if (!peer_has_receive()) return {WcStatus::rnr_retry_exc_err, 0};

  const auto bytes = static_cast<std::uint32_t>(total);
  CellKind kind = CellKind::send;
  std::uint32_t word = 0;
  if (wr.opcode != Opcode::send) {
    status = find_word(wr, &kind, &word);
    if (status == WcStatus::loc_qp_op_err) return {status, 0};
  }
  const PostedReceive& receive = peer_receives_[sent_ & peer_receive_mask_];
  if (bytes > peer_shortest_receive_ && bytes > receive.length.load(std::memory_order_relaxed)) {
    status = WcStatus::rem_inv_req_err;
  }
  if (bytes <= kInlineMax) {
    std::byte whole[kInlineMax];
    const std::byte* data = whole;
    if (wr.sges.size() == 1) {
      data = reinterpret_cast<const std::byte*>(wr.sges[0].addr);
    } else {
      software::gather(wr.sges, whole);
    }
    publish(kind, word, data, bytes);
  } else {
    if (status == WcStatus::success) {
      status = copy_to_receive(wr, receive, bytes);
      if (status != WcStatus::success) return {status, 0};
    }
    publish_placed(kind, word, bytes);
    if (bytes <= kWrittenAheadMax) prefetches_receives_ = true;
  }
  ++sent_;
  return {status, bytes};
}

// Copies a message that is too long for the cells directly into the posted receive.
WcStatus QueuePair::copy_to_receive(const SendWr& wr, const PostedReceive& receive, std::uint32_t bytes) {
  RemoteRange range;
  const std::uint64_t addr = receive.addr.load(std::memory_order_relaxed);
  const std::uint32_t memory = receive.memory.load(std::memory_order_relaxed);
  if (!remote_->resolve(memory, addr, bytes, &range)) return WcStatus::rem_inv_req_err;
  peer_->in_use_receive.store(sent_, std::memory_order_relaxed);
  peer_->in_use.store(kInUseReceive, std::memory_order_seq_cst);
  WcStatus status = peer_fault();
  if (status == WcStatus::success) {
    if (device_.options().before_chunk) device_.options().before_chunk(0);
    for (const Sge& sge : wr.sges) {
      if (remote_->copy(Direction::write, range, reinterpret_cast<void*>(sge.addr), sge.length) !=
          Copied::all) {
        status = WcStatus::rem_inv_req_err;
        break;
      }
      if (range.mapped != nullptr) range.mapped += sge.length;
      range.addr += sge.length;
    }
  }
  peer_->in_use.store(0, std::memory_order_release);
  return status;
}

Cell& QueuePair::next_cell() {
  ++cells_sent_;
  return peer_cells_[epoch_sent_++ & peer_cell_mask_];
}

/// Begins a new epoch if possible, before a message is sent. If earlier messages are unread now, some will
/// probably also be unread after the next message. The next check is therefore deferred, because each check
/// fetches a cache line that the peer writes.
[[gnu::noinline]] void QueuePair::look_for_epoch() {
  const bool all_read = peer_->consumed.load(std::memory_order_acquire) == sent_;
  if (all_read) epoch_sent_ = 0;
  epoch_look_ = epoch_sent_ + (all_read ? 1 : kEpochsBetweenLooks) * peer_epoch_cells_;
}

void QueuePair::publish(CellKind kind, std::uint32_t word, const std::byte* data, std::uint32_t bytes) {
  if (epoch_sent_ >= epoch_look_) look_for_epoch();
  Cell& first = next_cell();
  const CellHeader header(cells_sent_, bytes, kind, false);
  std::byte* to = first.data;
  std::uint32_t room = kFirstCellBytes;
  if (kind != CellKind::send) {
    copy_shared(to, &word, sizeof word);
    to += sizeof word;
    room -= static_cast<std::uint32_t>(sizeof word);
  }
  std::uint32_t left = bytes;
  while (true) {
    const std::uint32_t part = left < room ? left : room;
    if (part > 0) copy_shared(to, data, part);
    left -= part;
    if (left == 0) break;
    data += part;
    auto* next = reinterpret_cast<std::byte*>(&next_cell());
    const CellHeader number(cells_sent_, 0, kind, false);
    copy_shared(next, &number, kCellNumberBytes);
    to = next + kCellNumberBytes;
    room = kNextCellBytes;
  }
  first.header.store(pack(header), std::memory_order_release);
}

void QueuePair::publish_placed(CellKind kind, std::uint32_t word, std::uint32_t bytes) {
  if (epoch_sent_ >= epoch_look_) look_for_epoch();
  Cell& cell = next_cell();
  std::byte* to = cell.data;
  if (kind != CellKind::send) {
    copy_shared(to, &word, sizeof word);
    to += sizeof word;
  }
  copy_shared(to, &bytes, sizeof bytes);
  cell.header.store(pack(CellHeader(cells_sent_, 0, kind, true)), std::memory_order_release);
}

WcStatus QueuePair::bind(const SendWr& wr) {
  const SendWr::Bind& bind = wr.bind;
  if (!wr.sges.empty()) return WcStatus::loc_qp_op_err;
  auto* window = static_cast<Window*>(bind.window);
  if (window == nullptr || bind.region == nullptr || window->bound() || !window->of(device_))
    return WcStatus::mw_bind_err;
  const KeyEntry* region = device_.table().find(bind.region->lkey(), ProtectionTable::Kind::region);
  if (region == nullptr || !software::may_bind(bind.access, bind.length, region->access) ||
      !region->covers(bind.addr, bind.length))
    return WcStatus::mw_bind_err;
  const std::uint32_t memory = device_.share(region->memory, bind.addr, bind.length);
  const bool reached = device_.capabilities().exposes_any_memory && (bind.access & access_remote_atomic) == 0;
  if (memory == kNoMemory && !reached) return WcStatus::mw_bind_err;
  window->bind({bind.addr, bind.length, bind.access, qp_num_, memory, bind.region->lkey()});
  return WcStatus::success;
}

WcStatus QueuePair::invalidate(const SendWr& wr) {
  if (!wr.sges.empty()) return WcStatus::loc_qp_op_err;
  const std::uint32_t key = wr.invalidate_rkey;
  const KeyEntry* key_entry = device_.table().find(key, ProtectionTable::Kind::window);
  if (key_entry == nullptr || key_entry->qp_num != qp_num_) return WcStatus::loc_qp_op_err;
  const KeyEntry revoked = *key_entry;
  device_.table().revoke(key);
  if (peer_holds(key)) await_release(key, revoked.addr, revoked.length);
  return WcStatus::success;
}

}  // namespace rdma_rpc::fabric::shm

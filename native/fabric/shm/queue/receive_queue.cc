// This file implements post_recv and poll, which turn the messages that the peer wrote into our ring into
// completions. Every cell is untrusted: its header is read once, as one word, and checked before it is used.
// See queue_pair.h.
#include <algorithm>
#include <utility>

#include "fabric/shm/queue/queue_pair.h"

namespace rdma_rpc::fabric::shm {
namespace {

/// Number of bytes of a message in a receive that are prefetched, so that the messages of a batch arrive from
/// the peer's cache together.
constexpr std::uint32_t kReadAheadMax = 4096;

}  // namespace

std::size_t QueuePair::post_recv(std::span<const RecvWr> requests) {
  std::size_t taken = 0;
  for (const RecvWr& wr : requests) {
    if (posted_ - received_ == options_.recv_wr_max) break;
    Receive& receive = receives_[posted_ & receive_mask_];
    receive = {wr.wr_id, wr.sge.addr, wr.sge.length, WcStatus::wr_flush_err};
    ++taken;
    if (state_ == QpState::err) {
      ++posted_;
      continue;
    }
    std::uint32_t memory = kNoMemory;
    const KeyEntry* region = device_.table().find(wr.sge.lkey, ProtectionTable::Kind::region);
    bool usable = wr.sge.length == 0;
    if (!usable && region != nullptr && (region->access & access_local_write) != 0 &&
        region->covers(wr.sge.addr, wr.sge.length)) {
      memory = device_.share(region->memory, wr.sge.addr, wr.sge.length);
      usable = memory != kNoMemory || device_.capabilities().exposes_any_memory;
    }
    if (!usable) {
      receive.status = WcStatus::loc_prot_err;
      ++posted_;
      enter_error(SharedState::error);
      continue;
    }
    PostedReceive& shared = own_receives_[posted_ & receive_mask_];
    shared.addr.store(wr.sge.addr, std::memory_order_relaxed);
    shared.length.store(wr.sge.length, std::memory_order_relaxed);
    shared.memory.store(memory, std::memory_order_relaxed);
    if (wr.sge.length < shortest_receive_) {
      shortest_receive_ = wr.sge.length;
      own_->shortest_receive.store(shortest_receive_, std::memory_order_relaxed);
    }
    published_ = ++posted_;
  }
  own_->consumed.store(received_, std::memory_order_release);
  own_->posted.store(published_, std::memory_order_release);
  if (state_ == QpState::err) cq_.note(*this);
  return taken;
}

void QueuePair::expect_poll() const {
  prefetch(&own_cells_[epoch_read_ & cell_mask_]);
  if (epoch_read_ >= epoch_cells_) prefetch(&own_cells_[0]);
  prefetch(&receives_[received_ & receive_mask_], sizeof(Receive));
  prefetch(&receives_[posted_ & receive_mask_], sizeof(Receive));
  prefetch(&own_receives_[posted_ & receive_mask_]);
  prefetch(&own_->posted);
  if (peer_ != nullptr) prefetch(&peer_->state);
}

std::size_t QueuePair::poll(std::span<Wc> out) {
  if (awaited_.marker != 0 && !released()) return 0;
  std::size_t count = 0;
  if (completions_head_ != completions_tail_) count = poll_sends(out);
  return count + poll_receives(out.subspan(count));
}

std::size_t QueuePair::poll_sends(std::span<Wc> out) {
  std::size_t count = 0;
  while (count < out.size() && completions_head_ != completions_tail_) {
    const SendCompletion& done = completions_[completions_head_++ & completion_mask_];
    send_done_ = done.posted;
    out[count++] = {.wr_id = done.wr_id,
                    .status = done.status,
                    .opcode = done.opcode,
                    .qp_num = qp_num_,
                    .bytes = done.bytes,
                    .memory_gone = done.memory_gone};
  }
  return count;
}

std::size_t QueuePair::poll_receives(std::span<Wc> out) {
  std::size_t count = 0;
  if (peer_ != nullptr && !ring_closed_) {
    // The state is read before the ring, so that the messages that the peer sent before it failed are
    // delivered first.
    const bool fault =
        peer_->state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(SharedState::fault);
    while (count < out.size()) {
      CellHeader header;
      if (!find_message(std::memory_order_acquire, &epoch_read_, &header)) {
        if (fault) enter_error(SharedState::error);
        ring_closed_ = state_ == QpState::err;
        break;
      }
      if (!deliver(header, &out[count])) break;
      ++count;
    }
  }
  if (state_ == QpState::err && (ring_closed_ || peer_ == nullptr) && awaited_.marker == 0) {
    count += flush_receives(out.subspan(count));
  }
  return count;
}

bool QueuePair::may_hold_messages(std::uint64_t) const {
  std::uint64_t epoch = epoch_read_;
  CellHeader header;
  return peer_ != nullptr && !ring_closed_ && find_message(std::memory_order_acquire, &epoch, &header);
}

/// Finds the start of the next message, if it has arrived: behind the previous message, or at the first cell
/// (a new epoch).
inline bool QueuePair::find_message(std::memory_order order, std::uint64_t* epoch, CellHeader* header) const {
  *header = unpack(own_cells_[epoch_read_ & cell_mask_].header.load(order));
  if (header->has(cells_read_ + 1)) return true;
  if (epoch_read_ < epoch_cells_) return false;
  *header = unpack(own_cells_[0].header.load(order));
  if (!header->has(cells_read_ + 1)) return false;
  *epoch = 0;
  return true;
}

bool QueuePair::deliver(const CellHeader& header, Wc* wc) {
  const Cell& cell = own_cells_[epoch_read_ & cell_mask_];
  const bool has_word = header.kind != CellKind::send;
  const bool written = header.kind == CellKind::write_with_imm;
  const bool immediate = written || header.kind == CellKind::send_with_imm;
  const bool placed = header.placed;
  std::uint32_t word = 0, bytes = header.bytes, at = 0;
  if (has_word) {
    copy_shared(&word, cell.data, sizeof word);
    at = sizeof word;
  }
  if (placed) copy_shared(&bytes, cell.data + at, sizeof bytes);
  const bool kind_known =
      header.kind == CellKind::send || header.kind == CellKind::send_with_inv || immediate;
  if (!kind_known || (!placed && bytes > kInlineMax) || (written && !placed) || received_ == published_) {
    fail_receive(WcStatus::general_err);
    return false;
  }
  const Receive& receive = receives_[received_ & receive_mask_];
  if (!written && bytes > receive.length) {
    fail_receive(WcStatus::loc_len_err);
    return false;
  }
  if (header.kind == CellKind::send_with_inv && !invalidate_for_peer(word)) {
    fail_receive(WcStatus::rem_inv_req_err);
    return false;
  }
  ++cells_read_;
  ++epoch_read_;
  const std::byte* apart = nullptr;
  if (!placed) {
    auto* to = reinterpret_cast<std::byte*>(receive.addr);
    if (options_.short_apart) {
      if (std::byte* room = cq_.apart(bytes)) apart = to = room;
    }
    std::uint32_t part = std::min(bytes, kFirstCellBytes - at);
    if (part > 0) copy_shared(to, cell.data + at, part);
    for (std::uint32_t done = part; done < bytes; done += part) {
      const auto* next = reinterpret_cast<const std::byte*>(&own_cells_[epoch_read_++ & cell_mask_]);
      ++cells_read_;
      part = std::min(bytes - done, kNextCellBytes);
      copy_shared(to + done, next + kCellNumberBytes, part);
    }
  } else if (!written && bytes > 0) {
    prefetch(reinterpret_cast<const void*>(receive.addr), std::min(bytes, kReadAheadMax));
  }
  ++received_;
  *wc = {.wr_id = receive.wr_id,
         .status = WcStatus::success,
         .opcode = written ? Opcode::recv_rdma_with_imm : Opcode::recv,
         .has_imm = immediate,
         .qp_num = qp_num_,
         .bytes = bytes,
         .imm = immediate ? word : 0,
         .invalidated_rkey = has_word && !immediate ? word : 0,
         .apart = apart};
  return true;
}

bool QueuePair::invalidate_for_peer(std::uint32_t key) {
  const KeyEntry* key_entry = device_.table().find(key, ProtectionTable::Kind::window);
  if (key_entry == nullptr || key_entry->qp_num != qp_num_) return false;
  device_.table().revoke(key);
  // The peer's thread sent this message, so it cannot be copying at the same time. If the marker names such a
  // receive, either the marker is wrong, or the peer has bypassed its own library.
  return !peer_holds(key);
}

/// Completes the oldest receive with `status` and moves the queue pair to ERR.
void QueuePair::fail_receive(WcStatus status) {
  if (received_ != posted_) {
    Receive& receive = receives_[received_ & receive_mask_];
    if (receive.status == WcStatus::wr_flush_err) receive.status = status;
  }
  ring_closed_ = true;
  enter_error(SharedState::fault);
}

std::size_t QueuePair::flush_receives(std::span<Wc> out) {
  std::size_t count = 0;
  while (count < out.size() && received_ != posted_) {
    const Receive& receive = receives_[received_++ & receive_mask_];
    Wc& wc = out[count++];
    wc = {.wr_id = receive.wr_id, .status = receive.status, .opcode = Opcode::recv, .qp_num = qp_num_};
    // A receive with another status can only be the oldest one, so all receives behind a flushed one are
    // flushed, too.
    if (!options_.flush_together || receive.status != WcStatus::wr_flush_err) continue;
    wc.receives += static_cast<std::uint32_t>(posted_ - std::exchange(received_, posted_));
  }
  return count;
}

bool QueuePair::idle() const {
  // A peer that finishes a copy rings, so this side may sleep after the grace period. During the grace
  // period, it must keep looking.
  if (awaited_.marker != 0) return in_grace() ? false : peer_holds(awaited_.marker);
  if (completions_head_ != completions_tail_) return false;
  if (state_ == QpState::err) return received_ == posted_;
  if (peer_ == nullptr) return true;
  std::uint64_t epoch = 0;
  CellHeader header;
  return !find_message(std::memory_order_seq_cst, &epoch, &header) &&
         peer_->state.load(std::memory_order_seq_cst) != static_cast<std::uint32_t>(SharedState::fault);
}

}  // namespace rdma_rpc::fabric::shm

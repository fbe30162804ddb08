// Implements READ and WRITE: this process's CPU makes the checks that the peer's NIC would make, and then
// copies from or to the peer's memory. See queue_pair.h.
#include <algorithm>
#include <cstring>

#include "fabric/shm/queue/queue_pair.h"
#include "fabric/software/requests.h"

namespace rdma_rpc::fabric::shm {

bool QueuePair::is_granted(std::uint32_t rkey) const {
  return rkey != 0 && remote_->entry(rkey).key.load(std::memory_order_seq_cst) == rkey;
}

QueuePair::Outcome QueuePair::transfer(const SendWr& wr, Direction direction) {
  const Capabilities& caps = device_.capabilities();
  const bool read = direction == Direction::read;
  const bool immediate = wr.opcode == Opcode::rdma_write_with_imm;
  std::uint64_t total = 0;
  WcStatus status =
      check_sges(wr, read ? caps.max_sge_read : caps.max_sge, read ? access_local_write : 0u, &total);
  if (status != WcStatus::success) return {status, 0};
  status = peer_fault();
  if (status != WcStatus::success) return {status, 0};
  if (immediate && !peer_has_receive()) return {WcStatus::rnr_retry_exc_err, 0};

  const auto bytes = static_cast<std::uint32_t>(total);
  Outcome copied{status, bytes, false};
  // As on InfiniBand, a request of 0 bytes is not checked, because it accesses nothing.
  if (bytes > 0) {
    peer_->in_use.store(wr.rkey, std::memory_order_seq_cst);
    copied = copy_checked(wr, direction, total);
    peer_->in_use.store(0, std::memory_order_release);
  }
  if (copied.status == WcStatus::success && immediate) {
    publish_placed(CellKind::write_with_imm, wr.imm, bytes);
    ++sent_;
  }
  return {copied.status, bytes, copied.memory_gone};
}

std::string QueuePair::reach(std::uint32_t rkey, std::uint64_t addr, std::uint64_t bytes) {
  if (state_ != QpState::rts || rkey == 0) return {};
  const TableKey& entry = remote_->entry(rkey);
  if (entry.key.load(std::memory_order_acquire) != rkey) return {};
  std::string why;
  RemoteRange range;
  remote_->resolve(entry.memory.load(std::memory_order_relaxed), addr, bytes, &range, &why);
  return why;
}

/// Finds the range of the peer's memory for which the key grants this right. The key may become invalid
/// meanwhile.
WcStatus QueuePair::find_range(const SendWr& wr, std::uint32_t right, std::uint64_t bytes,
                               RemoteRange* range) {
  if (!is_granted(wr.rkey)) return WcStatus::rem_access_err;
  const TableKey& entry = remote_->entry(wr.rkey);
  const KeyEntry key_entry{
      entry.addr.load(std::memory_order_relaxed),   entry.length.load(std::memory_order_relaxed),
      entry.access.load(std::memory_order_relaxed), entry.qp_num.load(std::memory_order_relaxed),
      entry.memory.load(std::memory_order_relaxed), 0};
  // The check of the key before each segment comes after these reads. As long as the check finds the key, the
  // values that were read belong to that key.
  shared_fence(std::memory_order_acquire);
  const bool allowed = (key_entry.access & right) != 0 &&
                       (key_entry.qp_num == 0 || key_entry.qp_num == peer_qp_num_) &&
                       key_entry.covers(wr.remote_addr, bytes) &&
                       remote_->resolve(key_entry.memory, wr.remote_addr, bytes, range);
  return allowed ? WcStatus::success : WcStatus::rem_access_err;
}

QueuePair::Outcome QueuePair::copy_checked(const SendWr& wr, Direction direction, std::uint64_t bytes) {
  const std::uint32_t right = direction == Direction::read ? access_remote_read : access_remote_write;
  RemoteRange range;
  if (const WcStatus status = find_range(wr, right, bytes, &range); status != WcStatus::success)
    return {status};

  const ShmOptions& options = device_.options();
  std::uint64_t done = 0;
  for (const Sge& sge : wr.sges) {
    for (std::uint32_t offset = 0; offset < sge.length;) {
      // The copy is done in segments, so that a revocation need not wait for all of it. The first check of
      // the key may have passed just before a revocation that did not see the marker. The check here fails
      // after such a revocation.
      if (!is_granted(wr.rkey)) return {WcStatus::rem_access_err};
      if (const WcStatus fault = peer_fault(); fault != WcStatus::success) return {fault};
      if (options.before_chunk) options.before_chunk(done);
      const std::size_t part = std::min<std::size_t>(sge.length - offset, options.copy_chunk_bytes);
      const Copied copied = remote_->copy(direction, range, reinterpret_cast<void*>(sge.addr + offset), part);
      // The key is valid and the pages are gone, because the peer's application has freed memory that it lent
      // to a call. In that case only this call fails.
      if (copied == Copied::gone && direction == Direction::read) return {WcStatus::success, 0, true};
      if (copied != Copied::all) return {WcStatus::rem_access_err};
      if (range.mapped != nullptr) range.mapped += part;
      range.addr += part;
      offset += static_cast<std::uint32_t>(part);
      done += part;
    }
  }
  return {};
}

QueuePair::Outcome QueuePair::atomic(const SendWr& wr) {
  const Capabilities& caps = device_.capabilities();
  std::uint64_t total = 0;
  WcStatus status = check_sges(wr, caps.max_sge_read, access_local_write, &total);
  if (status == WcStatus::success) status = software::why_malformed(wr, total, caps);
  if (status == WcStatus::success) status = peer_fault();
  if (status != WcStatus::success) return {status, 0};
  std::uint64_t before = 0;
  peer_->in_use.store(wr.rkey, std::memory_order_seq_cst);
  status = update(wr, &before);
  peer_->in_use.store(0, std::memory_order_release);
  if (status == WcStatus::success)
    std::memcpy(reinterpret_cast<void*>(wr.sges[0].addr), &before, sizeof before);
  return {status, software::kAtomicBytes};
}

/// The CPU makes the update atomic, for every process that has the memory mapped, and even against plain
/// stores of the owner. Memory that is reached by address has no atomics: its owner grants no right to them
/// (Device::reg_mr()).
WcStatus QueuePair::update(const SendWr& wr, std::uint64_t* before) {
  RemoteRange range;
  WcStatus status = find_range(wr, access_remote_atomic, software::kAtomicBytes, &range);
  if (status != WcStatus::success || range.mapped == nullptr) return WcStatus::rem_access_err;
  if (!is_granted(wr.rkey)) return WcStatus::rem_access_err;
  status = peer_fault();
  if (status != WcStatus::success) return status;
  // The word is aligned, because the request is aligned (why_malformed()) and mappings are, too.
  *before = software::update(reinterpret_cast<std::uint64_t*>(range.mapped), wr.opcode, wr.atomic);
  return WcStatus::success;
}

}  // namespace rdma_rpc::fabric::shm

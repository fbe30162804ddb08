// See send_queue.h.
#include "fabric/tcp/queue/send_queue.h"

#include <algorithm>
#include <cstring>

#include "fabric/tcp/device.h"

namespace rdma_rpc::fabric::tcp {

std::size_t SendSlot::segments(std::uint32_t offset, std::uint32_t wanted, iovec* to) {
  if (inlined) {
    to[0] = {data.data() + offset, wanted};
    return wanted > 0 ? 1 : 0;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < sge_count && wanted > 0; ++i) {
    const Sge& sge = sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::uint32_t part = std::min(sge.length - offset, wanted);
    to[count++] = {reinterpret_cast<void*>(sge.addr + offset), part};
    wanted -= part;
    offset = 0;
  }
  return count;
}

static_assert(sizeof(AtomicOperands) == sizeof(Sge));

AtomicOperands SendSlot::operands() const {
  AtomicOperands operands{};
  std::memcpy(&operands, reinterpret_cast<const std::byte*>(&sges[1]), sizeof operands);
  return operands;
}

void SendSlot::set_operands(const AtomicOperands& operands) {
  std::memcpy(reinterpret_cast<std::byte*>(&sges[1]), &operands, sizeof operands);
}

SendQueue::SendQueue(Device& device, std::uint32_t limit, std::uint32_t first_number)
    : device_(device),
      at_(limit),
      // This does not use make_unique_for_overwrite, which is missing in the libstdc++ that the package's
      // binaries are built with.
      slots_(new SendSlot[at_.slots()]),
      next_number_(first_number),
      acked_(first_number) {}

WcStatus SendQueue::check(const SendWr& wr, std::uint64_t bytes) const {
  const WcStatus malformed = software::why_malformed(wr, bytes, device_.capabilities());
  if (malformed != WcStatus::success || wr.inline_data) return malformed;
  const std::uint32_t access = brings_bytes(wr.opcode) ? access_local_write : 0u;
  for (const Sge& sge : wr.sges) {
    if (!device_.keys().local_ok(sge, access)) return WcStatus::loc_prot_err;
  }
  return WcStatus::success;
}

void SendQueue::post(const SendWr& wr) {
  SendSlot& slot = this->slot(at_.posted++);
  const std::uint64_t bytes = software::bytes_of(wr.sges);
  slot.wr_id = wr.wr_id;
  slot.remote_addr = wr.remote_addr;
  slot.key = wr.opcode == Opcode::local_inv ? wr.invalidate_rkey : wr.rkey;
  slot.extra = wr.opcode == Opcode::send_with_inv ? wr.invalidate_rkey : wr.imm;
  slot.moved = 0;
  slot.opcode = wr.opcode;
  slot.status = check(wr, bytes);
  slot.signaled = wr.signaled;
  slot.fence = wr.fence;
  slot.inlined = wr.inline_data;
  slot.may_wait = wr.fence || brings_bytes(wr.opcode) || wr.opcode == Opcode::send_with_imm;
  slot.begun = slot.asked = slot.memory_gone = slot.abandoned = false;
  slot.bytes = slot.status == WcStatus::success ? static_cast<std::uint32_t>(bytes) : 0;
  if (is_write(slot.opcode)) unsent_write_bytes_ += slot.bytes;
  slot.sge_count = 0;
  if (slot.status != WcStatus::success) return;
  if (wr.opcode == Opcode::bind_mw) {
    auto* window = static_cast<software::Window*>(wr.bind.window);
    slot.bind = {window->of(device_.protection()) ? window->next_key() : 0, wr.bind.region->lkey(),
                 wr.bind.access, wr.bind.addr, wr.bind.length};
    if (slot.bind.key == 0) slot.status = WcStatus::mw_bind_err;
  } else if (wr.inline_data) {
    software::gather(wr.sges, slot.data.data());
  } else {
    std::copy(wr.sges.begin(), wr.sges.end(), slot.sges.begin());
    slot.sge_count = static_cast<std::uint8_t>(wr.sges.size());
    if (is_atomic(wr.opcode)) slot.set_operands({wr.atomic.compare_add, wr.atomic.swap});
  }
}

bool SendQueue::must_wait() {
  const SendSlot& slot = next();
  if (slot.begun || !slot.may_wait) return false;
  const std::uint32_t reads = reads_tail_ - reads_head_;
  if ((slot.fence && reads > 0) || (brings_bytes(slot.opcode) && reads == kReadsMax)) return true;
  const std::uint32_t needed = needed_features(slot.opcode);
  return needed != 0 && (!features_known() || (needed & ~features_) != 0);
}

std::uint32_t SendQueue::needed_features(Opcode opcode) {
  if (is_atomic(opcode)) return feature_atomics;
  return opcode == Opcode::send_with_imm ? std::uint32_t{feature_send_immediate} : 0u;
}

bool SendQueue::lacks_features() {
  return features_known() && (needed_features(next().opcode) & ~features_) != 0;
}

std::uint32_t SendQueue::begin_features_question() {
  features_asked_ = true;
  return features_number_ = begin_own();
}

void SendQueue::begin() {
  SendSlot& slot = next();
  slot.begun = true;
  slot.number = next_number_++;
}

void SendQueue::moved(std::uint32_t bytes) {
  SendSlot& slot = next();
  slot.moved += bytes;
  if (is_write(slot.opcode)) unsent_write_bytes_ -= bytes;
}

void SendQueue::started() {
  const SendSlot& slot = next();
  if (brings_bytes(slot.opcode) && slot.bytes > 0) reads_[reads_tail_++ % kReadsMax] = at_.started;
  ++at_.started;
}

bool SendQueue::acked(std::uint32_t number) {
  // Accepts only numbers of requests that were begun. A request with an unsent part cannot have been
  // executed.
  const std::uint32_t out = next_number_ - (!all_started() && next().begun ? 1u : 0u);
  if (static_cast<std::int32_t>(number - acked_) <= 0 || static_cast<std::int32_t>(out - number) < 0)
    return false;
  acked_ = number;
  return true;
}

SendSlot* SendQueue::reading() {
  return reads_head_ == reads_tail_ ? nullptr : &slot(reads_[reads_head_ % kReadsMax]);
}

void SendQueue::read_done() {
  // Requests are executed in order, so the requests before this one have been executed and need no ack.
  const std::uint32_t number = reading()->number;
  if (static_cast<std::int32_t>(number - acked_) > 0) acked_ = number;
  ++reads_head_;
}

void SendQueue::abandon_reads(std::uint64_t addr, std::uint64_t bytes) {
  for (std::uint64_t i = at_.retired; i != at_.posted; ++i) {
    SendSlot& slot = this->slot(i);
    if (!brings_bytes(slot.opcode)) continue;
    for (std::size_t at = 0; at < slot.sge_count; ++at) {
      const std::uint64_t from = slot.sges[at].addr;
      if (from < addr + bytes && addr < from + slot.sges[at].length) slot.abandoned = true;
    }
  }
}

bool SendQueue::is_over(const SendSlot& slot) const {
  if (is_local(slot.opcode)) return true;
  if (brings_bytes(slot.opcode) && slot.bytes > 0) return slot.moved == slot.bytes || slot.memory_gone;
  return is_behind(slot.number);
}

bool SendQueue::refused(std::uint32_t number, WcStatus status) {
  const std::uint64_t end = at_.started + (!all_started() && next().begun ? 1 : 0);
  for (std::uint64_t i = at_.retired; i != end; ++i) {
    SendSlot& slot = this->slot(i);
    if (is_local(slot.opcode)) continue;
    if (slot.number != number) {
      // Earlier requests have been executed, and an earlier READ has been answered.
      if (brings_bytes(slot.opcode) && !is_over(slot)) return false;
      continue;
    }
    if (is_over(slot)) return false;
    if (static_cast<std::int32_t>(number - acked_) > 0) acked_ = number;
    slot.status = status;
    return true;
  }
  return false;
}

bool SendQueue::fail_oldest(WcStatus status) {
  for (std::uint64_t i = at_.retired; i != at_.posted; ++i) {
    SendSlot& slot = this->slot(i);
    if (slot.status != WcStatus::success) return true;
    if (is_local(slot.opcode) || (slot.begun && is_over(slot))) continue;
    slot.status = status;
    return true;
  }
  return false;
}

SendSlot* SendQueue::retire() {
  while (at_.retired != at_.posted) {
    SendSlot& slot = this->slot(at_.retired);
    const bool failed = slot.status != WcStatus::success;
    if (!failed && (at_.retired == at_.started || !is_over(slot))) return nullptr;
    ++at_.retired;
    if (failed || slot.signaled) return &slot;
  }
  return nullptr;
}

SendSlot* SendQueue::flush() {
  if (at_.retired == at_.posted) return nullptr;
  SendSlot& slot = this->slot(at_.retired++);
  if (at_.retired > at_.started && slot.opcode == Opcode::bind_mw && slot.status == WcStatus::success) {
    // A key was assigned to a bind that will not be executed.
    if (device_.keys().find(slot.bind.key) != nullptr) device_.keys().remove(slot.bind.key);
  }
  return &slot;
}

}  // namespace rdma_rpc::fabric::tcp

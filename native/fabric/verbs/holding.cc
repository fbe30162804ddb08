// Requests that must not be with soft-RoCE at once. When a packet is lost, or late, its driver goes back to
// the oldest request that is not acknowledged and carries out everything from there again.
//
// Binds too (Quirks::binds_run_again). A window that is bound cannot be bound: the queue pair then sends
// nothing more, says it is fine, and flushes what is posted later. So a bind waits here until all packets
// before it are acknowledged.
//
// A WRITE of several packets may be acknowledged while it is being sent again. When it is then sent once
// more, that is one packet of no bytes, with the number after its last (Quirks::writes_shift); what follows
// gets numbers that are too high by one. A peer that has already had some of it takes the rest for what comes
// next: it carries out a SEND twice, puts bytes of a WRITE in the wrong place until there is one packet too
// many, and then ends the queue pair (rem_inv_req_err). So nothing goes behind such a WRITE until it is
// acknowledged.
//
// What is posted behind a request that waits, waits with it. On the device's thread; the rest of a queue
// pair's posting is in posting.cc.
//
// Only that driver's requests are ever held, so the copies are made on the heap.
#include "fabric/verbs/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// The least that a packet of any network holds.
constexpr std::uint32_t kOnePacket = 256;

}  // namespace

void QueuePair::note_write(std::uint32_t number, ibv_send_wr& wr) {
  const Entry& entry = sends_.at(number);
  if (entry.opcode != Opcode::rdma_write || entry.bytes <= kOnePacket) return;
  last_long_write_ = number;
  // What is posted next waits for it.
  wr.send_flags |= IBV_SEND_SIGNALED;
}

void QueuePair::hold(const SendWr& wr) {
  const bool tells = sends_.at(last_packet_).signaled || sends_.device_has(last_long_write_);
  if (held_.empty() && !tells) ask_for_last_packet();
  Held& held = held_.emplace_back();
  held.sges.resize(std::max<std::size_t>(wr.sges.size(), 1));
  sends_.push_held(prepare(wr, held.wr, held.sges.data()));
  // A bind behind it may wait for it.
  held.wr.send_flags |= IBV_SEND_SIGNALED;
  if ((held.wr.send_flags & IBV_SEND_INLINE) == 0) return;
  // Whoever posted it may use these bytes for something else when post_send() returns.
  for (const ibv_sge& sge : std::span(held.wr.sg_list, static_cast<std::size_t>(held.wr.num_sge))) {
    const auto* from = reinterpret_cast<const std::byte*>(sge.addr);
    held.inline_data.insert(held.inline_data.end(), from, from + sge.length);
  }
  held.sges[0] = {reinterpret_cast<std::uintptr_t>(held.inline_data.data()),
                  static_cast<std::uint32_t>(held.inline_data.size()), 0};
  held.wr.num_sge = held.inline_data.empty() ? 0 : 1;
}

/// Nothing would tell that a packet without a signal is acknowledged: an empty WRITE behind it does.
void QueuePair::ask_for_last_packet() {
  last_packet_ = sends_.push_internal({.opcode = Opcode::rdma_write, .internal = true});
  post_empty_write(last_packet_, IBV_SEND_SIGNALED);
}

void QueuePair::post_empty_write(std::uint32_t number, unsigned flags) {
  ibv_send_wr wr{};
  wr.wr_id = id_of(number);
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = flags;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_.get(), &wr, &bad); error != 0) fail(why_not_posted(error));
}

void QueuePair::release_held() {
  while (!held_.empty()) {
    Held& held = held_.front();
    const bool binds = held.wr.opcode == IBV_WR_BIND_MW;
    if (must_wait_for_device(binds)) return;
    const std::uint32_t number = sends_.release();
    held.wr.wr_id = id_of(number);
    if (is_packet(sends_.at(number).opcode)) note_packet(number, held.wr);
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(qp_.get(), &held.wr, &bad); error != 0) {
      sends_.at(number).status = WcStatus::general_err;
      sends_.take_back(number);
      return fail(why_not_posted(error));
    }
    // The next bind of this window begins with this key.
    if (binds) held.wr.bind_mw.mw->rkey = held.wr.bind_mw.rkey;
    held_.pop_front();
  }
}

}  // namespace rdma_rpc::fabric::verbs

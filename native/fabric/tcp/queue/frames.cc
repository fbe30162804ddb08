// Handles each frame of the peer: first the checks that a NIC makes, then the effect. Every field comes from
// the peer and is checked before it is used. An impossible frame ends the connection; a request that is not
// allowed is refused. See queue_pair.h.
#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {

void QueuePair::frame_begins() {
  const Header& header = incoming_.header();
  if (const char* why = why_malformed(header)) return broke_protocol(why);
  incoming_.payload_begins();
  switch (header.op) {
    case Op::send:
      send_begins();
      break;
    case Op::write:
      write_begins();
      break;
    case Op::read:
      return read_asked();
    case Op::atomic:
      atomic_begins();
      break;
    case Op::features:
      return sends_.know_features(header.extra) ? void() : broke_protocol("features that were not asked for");
    case Op::data:
      data_begins();
      break;
    case Op::ack:
      if (!sends_.acked(header.number)) return broke_protocol("an ack for requests that were never sent");
      return retire();
    case Op::refusal: {
      const auto status = refusal_status(header.extra);
      if (!status) return broke_protocol("a refusal with an unknown reason");
      if (!sends_.refused(header.number, *status))
        return broke_protocol("a refusal of a request that is not open");
      return retire();
    }
    case Op::gone:
      return peer_is_gone();
    case Op::bye:
      return fail("tcp: the peer has ended the connection");
  }
  if (socket_ && in_ == In::hears && incoming_.left() == 0) frame_ends();
}

void QueuePair::frame_ends() {
  const Header& header = incoming_.header();
  if (header.op == Op::data) return data_ends();
  if (header.op == Op::atomic) return atomic_ends();
  if (header.bytes == header.total) return header.op == Op::send ? send_ends() : write_ends();
  incoming_.expect_next();
}

bool QueuePair::is_in_place() {
  const char* why = incoming_.why_misplaced();
  if (why != nullptr) broke_protocol(why);
  return why == nullptr;
}

void QueuePair::send_begins() {
  const Header& header = incoming_.header();
  if (!is_in_place() || incoming_.is_under_way()) return;
  if (header.addr != 0) return broke_protocol("the first frame of a message does not begin at offset 0");
  if (receives_.is_empty()) return refuse(incoming_.handled(), WcStatus::rnr_retry_exc_err);
  const Sge& sge = receives_.oldest().sge;
  if (header.total > sge.length)
    return refuse(incoming_.handled(), WcStatus::rem_inv_req_err, WcStatus::loc_len_err);
  if (!device_.keys().local_ok(sge, access_local_write)) {
    refuse(incoming_.handled(), WcStatus::rem_inv_req_err, WcStatus::loc_prot_err);
  }
}

void QueuePair::send_ends() {
  const Header& header = incoming_.header();
  const bool invalidates = (header.flags & flag_invalidate) != 0;
  if (invalidates && !device_.keys().invalidate(header.extra, qp_num_)) {
    return refuse(incoming_.handled(), WcStatus::rem_inv_req_err, WcStatus::rem_inv_req_err);
  }
  const bool immediate = (header.flags & flag_immediate) != 0;
  complete_receive({.opcode = Opcode::recv,
                    .has_imm = immediate,
                    .bytes = static_cast<std::uint32_t>(header.addr) + header.bytes,
                    .imm = immediate ? header.extra : 0,
                    .invalidated_rkey = invalidates ? header.extra : 0});
  carried_out();
}

bool QueuePair::may_be_written(std::uint64_t bytes) const {
  const Header& header = incoming_.header();
  return device_.keys().remote_ok(header.key, qp_num_, header.addr + incoming_.done(), bytes,
                                  access_remote_write);
}

void QueuePair::write_begins() {
  const Header& header = incoming_.header();
  if (!is_in_place()) return;
  const bool immediate = (header.flags & flag_immediate) != 0;
  if (immediate && receives_.is_empty()) return refuse(incoming_.handled(), WcStatus::rnr_retry_exc_err);
  // Checks the whole remaining range, so that a range that is too long accesses no byte. As on InfiniBand, a
  // request of 0 bytes is not checked, because it accesses nothing.
  if (header.total > 0) {
    if (!may_be_written(header.total)) refuse(incoming_.handled(), WcStatus::rem_access_err);
  } else if (header.key == kFeaturesKey && header.addr == kFeaturesAddr) {
    acks_.features = true;
  }
}

void QueuePair::write_ends() {
  const Header& header = incoming_.header();
  if ((header.flags & flag_immediate) != 0) {
    complete_receive({.opcode = Opcode::recv_rdma_with_imm,
                      .has_imm = true,
                      .bytes = incoming_.request_bytes(),
                      .imm = header.extra});
  }
  carried_out();
}

void QueuePair::read_asked() {
  const Header& header = incoming_.header();
  if (incoming_.is_under_way()) return broke_protocol("a READ in the middle of another request");
  if (!is_in_place()) return;
  if (header.total == 0) return carried_out();
  if (peer_reads_.is_full()) return broke_protocol("more than 16 READs at once");
  if (!device_.keys().remote_ok(header.key, qp_num_, header.addr, header.total, access_remote_read)) {
    return refuse(incoming_.handled(), WcStatus::rem_access_err);
  }
  peer_reads_.add({header.addr, header.key, header.total, 0, incoming_.handled()});
  carried_out();
}

void QueuePair::atomic_begins() {
  const Header& header = incoming_.header();
  if (incoming_.is_under_way()) return broke_protocol("an atomic in the middle of another request");
  if (!is_in_place()) return;
  if (peer_reads_.is_full()) return broke_protocol("more than 16 READs at once");
  if (!device_.keys().remote_ok(header.key, qp_num_, header.addr, software::kAtomicBytes,
                                access_remote_atomic))
    refuse(incoming_.handled(), WcStatus::rem_access_err);
}

void QueuePair::atomic_ends() {
  const Header& header = incoming_.header();
  const bool adds = header.extra == kFetchAndAdd;
  peer_reads_.add({header.addr, header.key, software::kAtomicBytes, 0, incoming_.handled(), Op::atomic,
                   adds ? Opcode::atomic_fetch_and_add : Opcode::atomic_cmp_and_swp, operands_});
  carried_out();
}

void QueuePair::data_begins() {
  const Header& header = incoming_.header();
  SendSlot* slot = sends_.reading();
  if (slot == nullptr) return broke_protocol("an answer without a READ");
  if (header.number != slot->number || header.addr != slot->moved ||
      header.total != slot->bytes - slot->moved) {
    return broke_protocol("an answer that does not fit the READ that is next");
  }
  if ((header.flags & flag_memory_gone) != 0) slot->memory_gone = true;
}

void QueuePair::data_ends() {
  const SendSlot* slot = sends_.reading();
  if (slot->moved != slot->bytes && !slot->memory_gone) return;
  sends_.read_done();
  retire();
}

void QueuePair::carried_out() {
  const Header& header = incoming_.header();
  incoming_.request_is_done();
  if ((header.flags & flag_ack) != 0) acks_.owed = true;
}

void QueuePair::refuse(std::uint32_t number, WcStatus status, WcStatus receive) {
  refusal_ = {number, status, receive};
  in_ = In::refuses;
}

/// Must be called when all READ responses before the refusal have been sent.
void QueuePair::conclude_refusal() {
  in_ = In::deaf;
  const Header frame{.op = Op::refusal, .number = refusal_.number, .extra = refusal_code(refusal_.status)};
  if (refusal_.status == WcStatus::rnr_retry_exc_err) {
    // The sender made a mistake; this side stays in its state.
    return batch_.add_frame(frame);
  }
  if (refusal_.receive != WcStatus::success)
    complete_receive({.status = refusal_.receive, .opcode = Opcode::recv});
  enter_error(Op::bye, &frame);
}

void QueuePair::broke_protocol(const char* how) {
  fail(std::string("tcp: the peer broke the protocol: ") + how);
}

}  // namespace rdma_rpc::fabric::tcp

// Handles each frame of the peer: the checks that a NIC makes, then the effect. Every field comes from the
// peer and is checked before anything depends on it. An impossible frame ends the connection; a request that
// is not allowed is refused. See queue_pair.h.
#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {

void QueuePair::frame_begins() {
  if (const char* why = why_malformed(header_)) return broke_protocol(why);
  left_ = header_.bytes;
  switch (header_.op) {
    case Op::send:
      send_begins();
      break;
    case Op::write:
      write_begins();
      break;
    case Op::read:
      return read_asked();
    case Op::data:
      data_begins();
      break;
    case Op::ack:
      if (!sends_.acked(header_.number)) return broke_protocol("an ack for requests that were never sent");
      return retire();
    case Op::refusal: {
      const auto status = refusal_status(header_.extra);
      if (!status) return broke_protocol("a refusal with an unknown reason");
      if (!sends_.refused(header_.number, *status))
        return broke_protocol("a refusal of a request that is not open");
      return retire();
    }
    case Op::gone:
      return peer_is_gone();
    case Op::bye:
      return fail("tcp: the peer has ended the connection");
  }
  if (socket_ && in_ == In::hears && left_ == 0) frame_ends();
}

void QueuePair::frame_ends() {
  if (header_.op == Op::data) return data_ends();
  if (header_.bytes == header_.total) return header_.op == Op::send ? send_ends() : write_ends();
  written_ += header_.bytes;
  next_ = header_;
  next_->addr += header_.bytes;
  next_->total -= header_.bytes;
}

/// Whether this frame is valid at this point, as the first or a further frame of a request.
bool QueuePair::request_begins() {
  if (!next_) {
    if (header_.number == handled_) return true;
    broke_protocol("a request does not have the next number");
    return false;
  }
  const bool goes_on = header_.op == next_->op && header_.number == next_->number &&
                       header_.key == next_->key && header_.addr == next_->addr &&
                       header_.total == next_->total && header_.extra == next_->extra &&
                       (header_.flags & ~flag_ack) == next_->flags;
  if (!goes_on) broke_protocol("a frame does not continue where the one before it ended");
  return goes_on;
}

void QueuePair::send_begins() {
  if (!request_begins() || next_) return;
  if (header_.addr != 0) return broke_protocol("the first frame of a message does not begin at offset 0");
  if (receives_.is_empty()) return refuse(handled_, WcStatus::rnr_retry_exc_err);
  const Sge& sge = receives_.oldest().sge;
  if (header_.total > sge.length) return refuse(handled_, WcStatus::rem_inv_req_err, WcStatus::loc_len_err);
  if (!device_.keys().local_ok(sge, access_local_write)) {
    refuse(handled_, WcStatus::rem_inv_req_err, WcStatus::loc_prot_err);
  }
}

void QueuePair::send_ends() {
  const bool invalidates = (header_.flags & flag_invalidate) != 0;
  if (invalidates && !device_.keys().invalidate(header_.extra, qp_num_)) {
    return refuse(handled_, WcStatus::rem_inv_req_err, WcStatus::rem_inv_req_err);
  }
  complete_receive({.bytes = static_cast<std::uint32_t>(header_.addr) + header_.bytes,
                    .invalidated_rkey = invalidates ? header_.extra : 0});
  carried_out();
}

bool QueuePair::may_be_written(std::uint64_t bytes) const {
  const std::uint64_t done = header_.bytes - left_;
  return device_.keys().remote_ok(header_.key, qp_num_, header_.addr + done, bytes, access_remote_write);
}

void QueuePair::write_begins() {
  if (!request_begins()) return;
  const bool immediate = (header_.flags & flag_immediate) != 0;
  if (immediate && receives_.is_empty()) return refuse(handled_, WcStatus::rnr_retry_exc_err);
  // Checks the whole remaining range, so that a range that is too long touches no byte. As on InfiniBand, a
  // request of 0 bytes is not checked, since it touches nothing.
  if (header_.total > 0 && !may_be_written(header_.total)) refuse(handled_, WcStatus::rem_access_err);
}

void QueuePair::write_ends() {
  if ((header_.flags & flag_immediate) != 0) {
    const std::uint32_t all = written_ + header_.bytes;
    complete_receive(
        {.opcode = Opcode::recv_rdma_with_imm, .has_imm = true, .bytes = all, .imm = header_.extra});
  }
  carried_out();
}

void QueuePair::read_asked() {
  if (next_) return broke_protocol("a READ in the middle of another request");
  if (!request_begins()) return;
  if (header_.total == 0) return carried_out();
  if (answers_tail_ - answers_head_ == kReadsMax) return broke_protocol("more than 16 READs at once");
  if (!device_.keys().remote_ok(header_.key, qp_num_, header_.addr, header_.total, access_remote_read)) {
    return refuse(handled_, WcStatus::rem_access_err);
  }
  answers_[answers_tail_++ % kReadsMax] = {header_.addr, header_.key, header_.total, 0, handled_};
  carried_out();
}

void QueuePair::data_begins() {
  SendSlot* slot = sends_.reading();
  if (slot == nullptr) return broke_protocol("an answer without a READ");
  if (header_.number != slot->number || header_.addr != slot->moved ||
      header_.total != slot->bytes - slot->moved) {
    return broke_protocol("an answer that does not fit the READ that is next");
  }
  if ((header_.flags & flag_vanished) != 0) slot->vanished = true;
}

void QueuePair::data_ends() {
  const SendSlot* slot = sends_.reading();
  if (slot->moved != slot->bytes && !slot->vanished) return;
  sends_.read_done();
  retire();
}

void QueuePair::carried_out() {
  ++handled_;
  next_.reset();
  written_ = 0;
  if ((header_.flags & flag_ack) != 0) acks_.owed = true;
}

void QueuePair::refuse(std::uint32_t number, WcStatus status, WcStatus receive) {
  refusal_ = {number, status, receive};
  in_ = In::refuses;
}

/// Call when all READ responses before the refusal are sent.
void QueuePair::conclude_refusal() {
  in_ = In::deaf;
  const Header frame{.op = Op::refusal, .number = refusal_.number, .extra = refusal_code(refusal_.status)};
  if (refusal_.status == WcStatus::rnr_retry_exc_err) {
    // The sender made a mistake; this side stays in its state.
    return batch_.add_frame(frame);
  }
  if (refusal_.receive != WcStatus::success) complete_receive({.status = refusal_.receive});
  enter_error(Op::bye, &frame);
}

void QueuePair::broke_protocol(const char* how) {
  fail(std::string("tcp: the peer broke the protocol: ") + how);
}

}  // namespace rdma_rpc::fabric::tcp

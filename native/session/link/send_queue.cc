// See send_queue.h.
#include "session/link/send_queue.h"

#include <algorithm>

namespace rdma_rpc::session {

using fabric::Opcode;
using fabric::SendWr;
using fabric::Sge;

// The limit matters because every session has a send queue, even an idle session.
static_assert(sizeof(SendQueue) <= 8192);

namespace {
/// The peer returns credits when it owes half of them. Therefore at most the other half may be reserved.
/// Otherwise frames would wait for ever.
std::uint32_t reserves_of(std::uint32_t credits) {
  return std::min(credits / 4, credits / 2 - std::min(credits / 2, kControlCredits + 1));
}
}  // namespace

SendQueue::SendQueue(fabric::QueuePair& qp, const fabric::Capabilities& capabilities, SendSlots& slots,
                     Stats& stats, const telemetry::Recorder& recorder, std::uint64_t wr_id_base,
                     const QueueLimits& queue_limits, std::uint32_t depth, std::uint32_t credits,
                     std::uint32_t sequence)
    : qp_(qp),
      capabilities_(capabilities),
      slots_(slots),
      stats_(stats),
      recorder_(recorder),
      wr_id_base_(wr_id_base),
      depth_(depth),
      inline_max_(inline_max(capabilities)),
      most_(depth - capabilities.own_sends - 2),
      credits_(credits),
      credits_max_(credits),
      credits_certain_(credits),
      owed_threshold_(credits / 2),
      reserved_max_(reserves_of(credits)),
      peer_credits_(credits),
      sequence_(sequence),
      retired_(sequence),
      last_signaled_(sequence),
      waiting_(queue_limits.frames),
      waiting_control_(queue_limits.control),
      waiting_cancels_(reserved_max_),
      records_(new Record[depth]) {}

SendWr& SendQueue::prepare(Opcode opcode, bool signaled, Done done, std::uint32_t slot) {
  SendWr& wr = wrs_[prepared_++];
  record_of(sequence_++) = {slot & kNoSlot, done.then, done.ref};
  wr.wr_id = wr_id_base_ | sequence_;
  wr.opcode = opcode;
  wr.signaled = signaled || ++unsignaled_ >= depth_ / kSignalShare;
  if (wr.signaled) {
    unsignaled_ = 0;
    last_signaled_ = sequence_;
  }
  wr.inline_data = false;
  wr.fence = false;
  wr.sges = {};
  return wr;
}

void SendQueue::set_sges(SendWr& wr, std::span<const Sge> sges) {
  const auto index = static_cast<std::size_t>(&wr - wrs_.data());
  Sge* own = &sges_[index];
  if (sges.size() > 1) {
    if (lists_ == nullptr) lists_ = std::make_unique<GatherLists>();
    own = (*lists_)[index].data();
  }
  std::copy(sges.begin(), sges.end(), own);
  wr.sges = {own, sges.size()};
}

/// Takes as many of the owed credits as a header can carry.
std::uint16_t SendQueue::pay_credits() {
  const std::uint32_t credits = std::min<std::uint32_t>(owed_, 0xffff);
  owed_ -= credits;
  peer_credits_ += credits;
  return static_cast<std::uint16_t>(credits);
}

/// Owed credits are returned with other frames. Owed credits get a separate CREDIT frame in two cases: when
/// they are half of the peer's credits, and when the peer can send nothing more. The second case is needed
/// because waiting requests may hold receives, and half of the credits may then never be owed.
bool SendQueue::credits_due() const {
  // (The total of pooled credits varies. For such a peer, "half" therefore means half of the credits that the
  // peer has left.)
  if (owed_ == 0) return false;
  return owed_ >= (pooled_ ? peer_credits_ : owed_threshold_) || peer_credits_ <= kControlCredits;
}

void SendQueue::begin_with(std::uint32_t credits) {
  pooled_ = true;
  credits_ = peer_credits_ = credits_certain_ = credits;
  reserved_max_ = std::min(reserves_of(credits), kCertainCancels);
}

void SendQueue::prepare_frame(const Outgoing& frame) {
  // The last frame releases the slot, because work requests complete in order.
  std::byte* start = frame.tail.start;
  for (std::uint32_t rest = frame.tail.bytes; rest != 0;) {
    const std::uint32_t bytes = std::min(rest, frame.tail.each);
    prepare_in_slot({kNoSlot, start, static_cast<std::uint32_t>(sizeof(wire::Header)) + bytes, 0, {}}, false);
    start += bytes + kSegmentGap;
    rest -= bytes;
  }
  const bool alone = frame.tail.bytes == 0;
  if (!alone) ++stats_.segmented_messages;
  prepare_in_slot(frame, alone);
}

/// With `may_inline` the slot may be released as soon as the frame is posted, because the post copies it.
void SendQueue::prepare_in_slot(const Outgoing& frame, bool may_inline) {
  wire::Header header;
  std::memcpy(&header, frame.start, sizeof header);
  header.credits = pay_credits();
  std::memcpy(frame.start, &header, sizeof header);
  --credits_;

  std::uint32_t bytes = frame.bytes;
  if (sealing_ != nullptr) {
    headers_[prepared_] = header;
    bytes = sealing_->seal_frame(frame.start, bytes);
  }
  count_sent(header, bytes);
  const bool inlined = may_inline && bytes <= inline_max_;
  ++(inlined ? stats_.inline_sends : stats_.eager_sends);
  const Opcode opcode = frame.invalidate_rkey != 0 ? Opcode::send_with_inv : Opcode::send;
  const bool signaled = (!inlined && frame.slot != kNoSlot) || frame.done.then != Then::nothing;
  SendWr& wr = prepare(opcode, signaled, frame.done, frame.slot);
  wr.inline_data = inlined;
  wr.invalidate_rkey = frame.invalidate_rkey;
  const Sge sge{reinterpret_cast<std::uint64_t>(frame.start), bytes, slots_.lkey()};
  set_sges(wr, {&sge, 1});
}

void SendQueue::prepare_control(const Control& control) {
  wire::Header header = control.header;
  header.credits = pay_credits();
  --credits_;
  ++stats_.inline_sends;
  SendWr& wr = prepare(Opcode::send, control.done.then != Then::nothing, control.done);
  const std::size_t index = static_cast<std::size_t>(&wr - wrs_.data());
  std::byte* bytes = controls_[index].data();
  std::memcpy(bytes, &header, sizeof header);
  if (control.has_reply_buffer)
    std::memcpy(bytes + sizeof header, &control.reply_buffer, sizeof control.reply_buffer);
  auto count = static_cast<std::uint32_t>(sizeof header +
                                          (control.has_reply_buffer ? sizeof control.reply_buffer : 0));
  if (sealing_ != nullptr) count = sealing_->seal_frame(bytes, count);
  wr.inline_data = true;
  const Sge sge{reinterpret_cast<std::uint64_t>(bytes), count, 0};
  count_sent(header, count);
  set_sges(wr, {&sge, 1});
}

bool SendQueue::send(const Outgoing& frame) {
  if (!waiting() && may_send(kControlCredits + reserved_, 1 + frame.tail.count())) {
    prepare_frame(frame);
  } else if (!waiting_.push(frame)) {
    slots_.release(frame.slot);
    return false;
  }
  return true;
}

bool SendQueue::send_control(const wire::Header& header, const wire::ReplyBuffer* reply_buffer, Done done) {
  const Control control{header, reply_buffer != nullptr ? *reply_buffer : wire::ReplyBuffer{},
                        reply_buffer != nullptr, done};
  if (waiting_control_.empty() && may_send(kCreditFrameCredits + reserved_)) {
    prepare_control(control);
    return true;
  }
  return waiting_control_.push(control);
}

void SendQueue::send_reserved_cancel(const wire::Header& header, Done done) {
  waiting_cancels_.push({header, {}, false, done});  // never full: each CANCEL has one of the reserves
  move_cancels_up();
}

void SendQueue::move_cancels_up() {
  for (; !waiting_cancels_.empty() && may_send(kCreditFrameCredits); waiting_cancels_.pop()) {
    prepare_control(waiting_cancels_.front());
    --reserved_;
  }
}

void SendQueue::bind(fabric::MemoryWindow& window, const fabric::MemoryRegion& region, std::uint64_t addr,
                     std::uint64_t length, std::uint32_t access) {
  SendWr& wr = prepare(Opcode::bind_mw, false, {});
  wr.bind = {&window, &region, addr, length, access};
  post_prepared();
}

void SendQueue::invalidate(std::uint32_t rkey, Done done) {
  prepare(Opcode::local_inv, true, done).invalidate_rkey = rkey;
}

void SendQueue::read(const Sge& into, std::uint64_t remote_addr, std::uint32_t rkey, Done done) {
  SendWr& wr = prepare(Opcode::rdma_read, true, done);
  wr.remote_addr = remote_addr;
  wr.rkey = rkey;
  set_sges(wr, {&into, 1});
  recorder_.read(rkey, into.length);
  ++stats_.bulk_reads;
  stats_.bulk_read_bytes += into.length;
}

void SendQueue::write(std::span<const Sge> from, std::uint64_t remote_addr, std::uint32_t rkey) {
  std::uint32_t bytes = 0;
  for (const Sge& sge : from) bytes += sge.length;
  Done done{};
  bool signaled = false;
  // When posting a WRITE copies the data, no bytes are left to be sent afterwards.
  if (!capabilities_.copies_when_posted) {
    done = {Then::chunk_written, bytes};
    writes_ahead_ += bytes;
    unsignaled_write_bytes_ += bytes;
    signaled = unsignaled_write_bytes_ >= kWriteSignalBytes;
    if (signaled) unsignaled_write_bytes_ = 0;
  } else {
    write_bytes_completed_ += bytes;
  }
  SendWr& wr = prepare(Opcode::rdma_write, signaled, done);
  wr.remote_addr = remote_addr;
  wr.rkey = rkey;
  set_sges(wr, from);
  recorder_.write(rkey, bytes);
  ++stats_.bulk_writes;
  stats_.bulk_write_bytes += bytes;
}

/// Bytes that have left this host do not delay other frames, even if they travel for a long time. Not all
/// fabrics know how many bytes have left.
bool SendQueue::may_write_on(std::uint32_t bytes) {
  post_prepared();
  return prepared_ == 0 && qp_.unsent_write_bytes() <= kWriteAheadBytes - bytes;
}

void SendQueue::move_up() {
  move_cancels_up();
  for (; !waiting_control_.empty() && may_send(kCreditFrameCredits + reserved_); waiting_control_.pop()) {
    prepare_control(waiting_control_.front());
  }
  if (!waiting_control_.empty()) return;
  for (; !waiting_.empty() && may_send(kControlCredits + reserved_, 1 + waiting_.front().tail.count());
       waiting_.pop())
    prepare_frame(waiting_.front());
}

bool SendQueue::post() {
  if (waiting()) move_up();
  if (credits_due() && may_send(0)) {
    prepare_control({wire::Header::of(wire::FrameType::credit), {}, false, {}});
    ++stats_.credit_frames;
  }
  if (prepared_ != 0) post_prepared();
  return prepared_ != 0;
}

void SendQueue::post_prepared() {
  if (prepared_ == 0) return;
  const std::size_t taken = qp_.post_send({wrs_.data(), prepared_});
  recorder_.post(taken, prepared_);
  std::uint32_t sequence = first_prepared();
  for (std::size_t i = 0; i < taken; ++i, ++sequence) {
    if (wrs_[i].inline_data) give_slot_back(record_of(sequence));  // copied by the post
  }
  const std::size_t rest = prepared_ - taken;
  for (std::size_t i = 0; i < rest && taken != 0; ++i) {
    wrs_[i] = wrs_[taken + i];
    controls_[i] = controls_[taken + i];
    if (sealing_ != nullptr) headers_[i] = headers_[taken + i];
    if (wrs_[i].sges.size() > 1) {
      (*lists_)[i] = (*lists_)[taken + i];
      wrs_[i].sges = {(*lists_)[i].data(), wrs_[i].sges.size()};
    } else if (!wrs_[i].sges.empty()) {
      sges_[i] = sges_[taken + i];
      const bool in_slot = record_of(sequence + static_cast<std::uint32_t>(i)).slot != kNoSlot;
      if (wrs_[i].inline_data && !in_slot) {
        sges_[i].addr = reinterpret_cast<std::uint64_t>(controls_[i].data());
      }
      wrs_[i].sges = {&sges_[i], 1};
    }
  }
  prepared_ = rest;
}

void SendQueue::post_drain() {
  prepare(Opcode::send, true, {Then::drained, 0});
  post_prepared();
}

bool SendQueue::remove(std::uint32_t call) {
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    wire::Header header;
    std::memcpy(&header, waiting_.at(i).start, sizeof header);
    if (header.type != static_cast<std::uint8_t>(wire::FrameType::request) || header.call != call) continue;
    slots_.release(waiting_.at(i).slot);
    waiting_.erase(i);
    return true;
  }
  return false;
}

}  // namespace rdma_rpc::session

// Sends frames. next_frame() is the only place that decides which frame is next. Control frames and small
// requests come first. Then comes one part of a transfer, alternately of a request and of a READ response.
// Therefore a small frame waits for at most one part, in addition to the bytes in the kernel. Requests keep
// their order: a small request waits for a WRITE that was posted before it, and no other numbered frame comes
// between the frames of one request. See queue_pair.h.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {
namespace {

/// Limit of bytes sent for one queue pair before other queue pairs have their turn and incoming data is
/// handled: one bulk frame. In one run, a small call beside transfers waited half as long with this limit as
/// with eight frames, and the transfers were not slower.
constexpr std::size_t kBytesPerTurn = kFrameBytesMax;
constexpr std::uint32_t kSmall = 4096;

/// For a single segment, send() costs the kernel less than sendmsg() with a list of one.
ssize_t send_segments(int fd, std::span<iovec> segments, int flags) {
  if (segments.size() == 1) return ::send(fd, segments[0].iov_base, segments[0].iov_len, flags);
  msghdr message{};
  message.msg_iov = segments.data();
  message.msg_iovlen = segments.size();
  return ::sendmsg(fd, &message, flags);
}

bool is_small(const SendSlot& slot) { return slot.opcode == Opcode::rdma_read || slot.bytes <= kSmall; }

}  // namespace

void QueuePair::flush() {
  coalesced_ = 0;
  for (std::size_t bytes = 0; socket_ && out_ == Out::free;) {
    if (bytes >= kBytesPerTurn) return wants_turn();
    if (batch_.empty() && !form()) return;
    if (!batch_.may_be_read(device_.keys(), qp_num_)) {
      return fail("tcp: a window was invalidated while the answer to a READ of it was being sent");
    }
    const std::span<iovec> rest = batch_.rest();
    const ssize_t sent = send_segments(socket_.get(), rest, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      batch_.sent(static_cast<std::size_t>(sent));
      path_.sent();
      device_.path_timer().sent();
      bytes += static_cast<std::size_t>(sent);
      stream_bytes_.sent += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      out_ = Out::blocked;
    } else if (errno != EINTR) {
      // Bytes that the peer sent before it closed can still be read.
      out_ = Out::broken;
      send_error_ = errno;
      readable_ = reads_to_end_ = true;
      wants_turn();
    }
  }
}

/// Fills the batch with frames, at most one of them a part of a transfer. Returns false when nothing has to
/// be sent.
bool QueuePair::form() {
  batch_.clear();
  while (batch_.has_room(kMaxSge) && batch_.bytes() < FrameBatch::kBytes && add(next_frame(LoneAck::now))) {
  }
  retire();
  return socket_ && !batch_.empty();
}

/// Returns the state of the next request, after executing the local requests before it.
QueuePair::NextRequest QueuePair::next_request() {
  carry_out_local();
  if (sends_.all_started() || sends_.next().status != WcStatus::success) return NextRequest::waits;
  if (sends_.must_wait()) {
    look_at_features();
    return NextRequest::waits;
  }
  const SendSlot& slot = sends_.next();
  if (slot.begun) return NextRequest::under_way;
  return is_small(slot) ? NextRequest::small : NextRequest::bulk;
}

/// Asks the peer for its features when the next request waits because the peer may not support it. A request
/// that the peer does not support is never sent.
void QueuePair::look_at_features() {
  if (sends_.needs_features()) acks_.question = asks_for_features_ = true;
  if (!sends_.lacks_features()) return;
  lacks_feature_ = true;
  sends_.next().status = WcStatus::loc_qp_op_err;
  carry_out_local();
}

/// Decides which frame is next. The function chooses one frame at a time, because the choice depends on the
/// previous frame: a local request may have become due that needs a question, and the request behind it may
/// have begun.
QueuePair::FrameKind QueuePair::next_frame(LoneAck ack) {
  if (!socket_) return FrameKind::none;
  if (in_ == In::refuses && peer_reads_.is_empty()) return FrameKind::refusal;
  if (acks_.owed && ack == LoneAck::now) return FrameKind::ack;
  if (in_ == In::refuses) return FrameKind::answer;
  const NextRequest next = next_request();
  // The last frame of a request in progress also asks for an ack (add_request()).
  if (acks_.question && next != NextRequest::under_way) return FrameKind::question;
  if (next == NextRequest::small) return FrameKind::request;
  if (next == NextRequest::waits || (!peer_reads_.is_empty() && answer_next_))
    return !peer_reads_.is_empty() ? FrameKind::answer : FrameKind::none;
  return FrameKind::request;
}

/// Adds a frame of that kind to the batch. Returns whether another frame may follow.
bool QueuePair::add(FrameKind kind) {
  switch (kind) {
    case FrameKind::none:
      return false;
    case FrameKind::refusal:
      conclude_refusal();
      return true;
    case FrameKind::ack:
      acks_.owed = false;
      if (std::exchange(acks_.features, false)) batch_.add_frame({.op = Op::features, .extra = kFeatureBits});
      batch_.add_frame({.op = Op::ack, .number = incoming_.handled()});
      return true;
    case FrameKind::question:
      add_question();
      return true;
    case FrameKind::request: {
      const bool bulk = sends_.next().begun || !is_small(sends_.next());
      if (bulk) answer_next_ = true;
      add_request();
      return !bulk;
    }
    case FrameKind::answer:
      answer_next_ = false;
      add_answer();
      return false;
  }
  return false;
}

/// Adds a WRITE of 0 bytes, which is sent only to get its ack.
void QueuePair::add_question() {
  acks_.question = false;
  if (std::exchange(asks_for_features_, false)) {
    const std::uint32_t number = sends_.begin_features_question();
    return batch_.add_frame(
        {.op = Op::write, .flags = flag_ack, .number = number, .key = kFeaturesKey, .addr = kFeaturesAddr});
  }
  if (sends_.is_unacked())
    batch_.add_frame({.op = Op::write, .flags = flag_ack, .number = sends_.begin_own()});
}

/// Adds as much of the next request as fits in one frame.
void QueuePair::add_request() {
  SendSlot& slot = sends_.next();
  if (!slot.begun) sends_.begin();
  Header header{.number = slot.number};
  if (is_atomic(slot.opcode)) return add_atomic(slot);
  if (slot.opcode == Opcode::rdma_read) {
    header.op = Op::read;
    header.flags = slot.signaled && slot.bytes == 0 ? flag_ack : 0;
    header.key = slot.key;
    header.addr = slot.remote_addr;
    header.total = slot.bytes;
    batch_.add_frame(header);
    return sends_.started();
  }
  header.total = slot.bytes - slot.moved;
  header.bytes = std::min(header.total, kFrameBytesMax);
  const bool last = header.bytes == header.total;
  if (is_write(slot.opcode)) {
    header.op = Op::write;
    header.key = slot.key;
    header.addr = slot.remote_addr + slot.moved;
    if (slot.opcode == Opcode::rdma_write_with_imm) header.flags = flag_immediate;
  } else {
    header.op = Op::send;
    header.addr = slot.moved;
    if (slot.opcode == Opcode::send_with_inv) header.flags = flag_invalidate;
    if (slot.opcode == Opcode::send_with_imm) header.flags = flag_immediate;
  }
  if (header.flags != 0) header.extra = slot.extra;
  if (last && (slot.signaled || acks_.asks())) header.flags |= flag_ack;
  if (last) acks_.asked();
  batch_.add_frame(header);
  iovec segments[kMaxSge];
  const std::size_t count = slot.segments(slot.moved, header.bytes, segments);
  for (std::size_t i = 0; i < count; ++i) batch_.add_segment(segments[i].iov_base, segments[i].iov_len);
  sends_.moved(header.bytes);
  if (last) sends_.started();
}

void QueuePair::add_atomic(const SendSlot& slot) {
  const AtomicOperands operands = slot.operands();
  batch_.add_frame({.op = Op::atomic,
                    .bytes = sizeof operands,
                    .number = slot.number,
                    .key = slot.key,
                    .addr = slot.remote_addr,
                    .total = sizeof operands,
                    .extra = slot.opcode == Opcode::atomic_fetch_and_add ? kFetchAndAdd : kCompareAndSwap});
  batch_.add_segment(&operands, sizeof operands);
  sends_.started();
}

/// Executes the atomic that is next, and adds its answer.
void QueuePair::add_atomic_answer() {
  const PeerReads::Answer answer = peer_reads_.oldest();
  peer_reads_.oldest_is_done();
  const SendWr::Atomic operands{answer.operands.compare_add, answer.operands.swap};
  auto* const word = reinterpret_cast<std::uint64_t*>(answer.addr);
  const std::uint64_t before = software::update(word, answer.atomic, operands);
  batch_.add_frame({.op = Op::data, .bytes = answer.left, .number = answer.number, .total = answer.left});
  batch_.add_segment(&before, sizeof before);
}

void QueuePair::add_answer() {
  PeerReads::Answer& answer = peer_reads_.oldest();
  const bool atomic = answer.op == Op::atomic;
  if (!device_.keys().remote_ok(answer.key, qp_num_, answer.addr, answer.left,
                                atomic ? access_remote_atomic : access_remote_read)) {
    peer_reads_.clear();
    refuse(answer.number, WcStatus::rem_access_err);
    return wants_turn();
  }
  if (device_.keys().is_revoked(answer.key)) {
    peer_reads_.oldest_is_done();
    return batch_.add_frame({.op = Op::data,
                             .flags = flag_memory_gone,
                             .number = answer.number,
                             .addr = answer.moved,
                             .total = answer.left});
  }
  if (atomic) return add_atomic_answer();
  const std::uint32_t bytes = std::min(answer.left, kFrameBytesMax);
  batch_.add_frame(
      {.op = Op::data, .bytes = bytes, .number = answer.number, .addr = answer.moved, .total = answer.left},
      answer.key);
  batch_.add_segment(reinterpret_cast<const void*>(answer.addr), bytes);
  answer.addr += bytes;
  answer.moved += bytes;
  answer.left -= bytes;
  if (answer.left == 0) peer_reads_.oldest_is_done();
}

}  // namespace rdma_rpc::fabric::tcp

// Receives bytes. Bulk payload is read from the socket directly into its destination. Only headers and small
// payloads are read into the device's prefetch buffer, so that many small frames cost one system call. Before
// each call the destination is checked again for write permission. See queue_pair.h.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {
namespace {

/// Limit of bytes read for one queue pair before other queue pairs have their turn and finished work is
/// reported: one bulk frame.
constexpr std::size_t kBytesPerTurn = kFrameBytesMax;
/// Behind the rest of a payload longer than this, only the next header is read, because more bulk payload may
/// follow.
constexpr std::size_t kSmall = 4096;
constexpr const char* kNoGoodBye =
    "the peer has closed the connection without a good-bye: its process has ended, or a device on the "
    "path has cut the connection";

/// For a single segment, recv() costs the kernel less than recvmsg() with a list of one.
ssize_t receive_segments(int fd, std::span<iovec> segments) {
  if (segments.size() == 1) return ::recv(fd, segments[0].iov_base, segments[0].iov_len, MSG_DONTWAIT);
  msghdr message{};
  message.msg_iov = segments.data();
  message.msg_iovlen = segments.size();
  return ::recvmsg(fd, &message, MSG_DONTWAIT);
}

}  // namespace

void QueuePair::read() {
  for (std::size_t bytes = 0; socket_ && readable_;) {
    if (bytes >= kBytesPerTurn) return wants_turn();
    if (!may_read()) return;
    if (in_ == In::refuses) {
      // The socket cannot take the refusal, nor the responses that are queued before it.
      peer_reads_.clear();
      batch_.clear();
      conclude_refusal();
      continue;
    }
    iovec iov[kMaxSge + 1];
    std::size_t count = 0;
    if (in_ == In::deaf) {
      iov[count++] = {device_.scrap().data(), device_.scrap().size()};
    } else {
      if (incoming_.left() > 0) count = landing(iov);
      if (in_ != In::hears) continue;
      iov[count++] = {device_.prefetch().data(),
                      incoming_.left() > kSmall ? sizeof(Header) : device_.prefetch().size()};
    }
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < count; ++i) wanted += iov[i].iov_len;
    const ssize_t result = receive_segments(socket_.get(), {iov, count});
    if (result < 0 && errno == EINTR) continue;
    if (result <= 0) {
      readable_ = false;
      if (result == 0) return lost(kNoGoodBye);
      const int error = errno == EAGAIN ? send_error_ : errno;
      return error == 0 ? void() : lost("the connection was lost: " + why_lost(error));
    }
    const auto got = static_cast<std::size_t>(result);
    bytes += got;
    stream_bytes_.received += got;
    // A short read has emptied the socket. If the end of the connection has been announced, the next read
    // reports it.
    readable_ = got == wanted || reads_to_end_;
    if (in_ == In::deaf) continue;
    const std::size_t direct = std::min(got, incoming_.left());
    if (direct > 0) landed(direct);
    take_bytes(device_.prefetch().data(), got - direct);
  }
}

void QueuePair::take_bytes(const std::byte* from, std::size_t bytes) {
  while (bytes > 0 && socket_ && in_ == In::hears) {
    std::size_t part = 0;
    if (incoming_.left() > 0) {
      iovec to[kMaxSge];
      const std::size_t count = landing(to);
      if (in_ != In::hears) return;
      for (std::size_t i = 0; i < count && part < bytes; ++i) {
        const std::size_t segment = std::min(bytes - part, to[i].iov_len);
        std::memcpy(to[i].iov_base, from + part, segment);
        part += segment;
      }
      landed(part);
    } else {
      part = incoming_.take_header(from, bytes);
      if (incoming_.header_is_whole()) frame_begins();
    }
    from += part;
    bytes -= part;
  }
}

/// Returns the destination of the rest of the frame's payload, in at most kMaxSge segments. Refuses the
/// request when that memory may not be written any more.
std::size_t QueuePair::landing(iovec* to) {
  const Header& header = incoming_.header();
  const std::uint64_t done = incoming_.done();
  const std::size_t left = incoming_.left();
  switch (header.op) {
    case Op::data:
      if (sends_.reading()->abandoned) {
        to[0] = {device_.scrap().data(), left};
        return 1;
      }
      return sends_.reading()->segments(sends_.reading()->moved, static_cast<std::uint32_t>(left), to);
    case Op::atomic:
      to[0] = {reinterpret_cast<std::byte*>(&operands_) + done, left};
      return 1;
    case Op::send:
      to[0] = {reinterpret_cast<void*>(receives_.oldest().sge.addr + header.addr + done), left};
      return 1;
    default:
      if (!may_be_written(left)) {
        refuse(incoming_.handled(), WcStatus::rem_access_err);
        return 0;
      }
      if (device_.keys().is_revoked(header.key)) {
        to[0] = {device_.scrap().data(), left};
        return 1;
      }
      to[0] = {reinterpret_cast<void*>(header.addr + done), left};
      return 1;
  }
}

void QueuePair::landed(std::size_t bytes) {
  if (incoming_.header().op == Op::data) {
    sends_.reading()->moved += static_cast<std::uint32_t>(bytes);
    read_bytes_arrived_ += bytes;
  }
  incoming_.landed(bytes);
  if (incoming_.left() == 0) frame_ends();
}

}  // namespace rdma_rpc::fabric::tcp

// See frame_batch.h.
#include "fabric/tcp/queue/frame_batch.h"

#include <algorithm>
#include <cstring>

namespace rdma_rpc::fabric::tcp {
namespace {

/// Limit of the size of a payload that is copied into the batch. A longer payload is sent from its own
/// memory, without a copy.
constexpr std::size_t kCopiedMax = 512;

}  // namespace

void FrameBatch::clear() {
  frames_ = sent_frames_ = segments_ = next_segment_ = copied_ = bytes_ = sent_ = 0;
}

void FrameBatch::add_frame(const Header& header, std::uint32_t key) {
  about_[frames_++] = {bytes_, key, 0, 0, 0};
  add_copy(&header, sizeof header);
}

void FrameBatch::add_segment(const void* data, std::size_t bytes) {
  Frame& frame = about_[frames_ - 1];
  if (frame.key == 0 && bytes <= kCopiedMax && copied_ + bytes <= kCopies) return add_copy(data, bytes);
  add_bytes(const_cast<void*>(data), bytes);
  if (frame.key == 0) return;
  frame.addr = reinterpret_cast<std::uint64_t>(data);
  frame.bytes = bytes;
  frame.segment = segments_ - 1;
}

void FrameBatch::add_copy(const void* data, std::size_t bytes) {
  std::byte* to = &copies_[copied_];
  std::memcpy(to, data, bytes);
  copied_ += bytes;
  add_bytes(to, bytes);
}

/// Adds the bytes as a new segment, or extends the last one when they follow it in memory.
void FrameBatch::add_bytes(void* data, std::size_t bytes) {
  iovec* last = segments_ == 0 ? nullptr : &iov_[segments_ - 1];
  if (last != nullptr && static_cast<std::byte*>(last->iov_base) + last->iov_len == data) {
    last->iov_len += bytes;
  } else {
    iov_[segments_++] = {data, bytes};
  }
  bytes_ += bytes;
  about_[frames_ - 1].end = bytes_;
}

void FrameBatch::sent(std::size_t bytes) {
  sent_ += bytes;
  while (sent_frames_ < frames_ && about_[sent_frames_].end <= sent_) ++sent_frames_;
  while (next_segment_ < segments_) {
    iovec& segment = iov_[next_segment_];
    if (bytes < segment.iov_len) {
      segment.iov_base = static_cast<std::byte*>(segment.iov_base) + bytes;
      segment.iov_len -= bytes;
      return;
    }
    bytes -= segment.iov_len;
    ++next_segment_;
  }
}

bool FrameBatch::may_be_read(software::KeyTable& keys, std::uint32_t qp_num) const {
  for (std::size_t i = sent_frames_; i < frames_; ++i) {
    const Frame& frame = about_[i];
    if (frame.key != 0 && !keys.remote_ok(frame.key, qp_num, frame.addr, frame.bytes, access_remote_read)) {
      return false;
    }
  }
  return true;
}

void FrameBatch::keep(std::uint32_t key) {
  for (std::size_t i = sent_frames_; i < frames_; ++i) {
    Frame& frame = about_[i];
    if (frame.key != key) continue;
    iovec& segment = iov_[frame.segment];
    const auto* from = static_cast<const std::byte*>(segment.iov_base);
    kept_.assign(from, from + segment.iov_len);
    segment.iov_base = kept_.data();
    frame.key = 0;
    return;
  }
}

std::vector<std::byte> FrameBatch::rest_of_frame() const {
  std::vector<std::byte> rest;
  if (empty() || begun() == 0) return rest;
  std::size_t left = about_[sent_frames_].end - sent_;
  for (std::size_t i = next_segment_; left > 0; ++i) {
    const auto* from = static_cast<const std::byte*>(iov_[i].iov_base);
    const std::size_t part = std::min(left, iov_[i].iov_len);
    rest.insert(rest.end(), from, from + part);
    left -= part;
  }
  return rest;
}

}  // namespace rdma_rpc::fabric::tcp

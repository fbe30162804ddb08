// See burst.h.
#include "fabric/tcp/burst.h"

namespace rdma_rpc::fabric::tcp {

void Burst::clear() {
  frames_ = sent_frames_ = pieces_ = next_piece_ = bytes_ = 0;
  cut_ = false;
}

void Burst::add_frame(const Header& header, std::uint32_t key) {
  headers_[frames_] = header;
  iov_[pieces_++] = {&headers_[frames_], sizeof header};
  about_[frames_++] = {pieces_, key, 0, 0};
  bytes_ += sizeof header;
}

void Burst::add_piece(const void* data, std::size_t bytes) {
  Frame& frame = about_[frames_ - 1];
  if (frame.key != 0) {
    frame.addr = reinterpret_cast<std::uint64_t>(data);
    frame.bytes = bytes;
  }
  iov_[pieces_++] = {const_cast<void*>(data), bytes};
  frame.end_piece = pieces_;
  bytes_ += bytes;
}

void Burst::sent(std::size_t bytes) {
  if (bytes > 0) cut_ = true;
  while (next_piece_ < pieces_) {
    iovec& piece = iov_[next_piece_];
    if (bytes < piece.iov_len) {
      piece.iov_base = static_cast<std::byte*>(piece.iov_base) + bytes;
      piece.iov_len -= bytes;
      return;
    }
    bytes -= piece.iov_len;
    ++next_piece_;
    if (next_piece_ == about_[sent_frames_].end_piece) {
      ++sent_frames_;
      cut_ = bytes > 0;
    }
  }
}

bool Burst::may_be_read(KeyTable& keys, std::uint32_t qp_num) const {
  for (std::size_t i = sent_frames_; i < frames_; ++i) {
    const Frame& frame = about_[i];
    if (frame.key != 0 && !keys.remote_ok(frame.key, qp_num, frame.addr, frame.bytes, access_remote_read)) {
      return false;
    }
  }
  return true;
}

void Burst::keep(std::uint32_t key) {
  for (std::size_t i = sent_frames_; i < frames_; ++i) {
    Frame& frame = about_[i];
    if (frame.key != key) continue;
    iovec& piece = iov_[frame.end_piece - 1];
    const auto* from = static_cast<const std::byte*>(piece.iov_base);
    kept_.assign(from, from + piece.iov_len);
    piece.iov_base = kept_.data();
    frame.key = 0;
    return;
  }
}

std::vector<std::byte> Burst::rest_of_frame() const {
  std::vector<std::byte> rest;
  if (!cut_) return rest;
  for (std::size_t i = next_piece_; i < about_[sent_frames_].end_piece; ++i) {
    const auto* from = static_cast<const std::byte*>(iov_[i].iov_base);
    rest.insert(rest.end(), from, from + iov_[i].iov_len);
  }
  return rest;
}

}  // namespace rdma_rpc::fabric::tcp

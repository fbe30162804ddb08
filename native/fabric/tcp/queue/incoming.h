// Records the progress of the incoming frame: how many bytes of its header and payload have arrived, and
// which frame must follow in the same request. This class checks the order of frames but does not execute
// them. A QueuePair owns this object and uses it on the device's thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class Incoming {
 public:
  /// Copies the missing bytes of the header. Returns how many bytes it used. The frame begins when
  /// header_is_whole().
  std::size_t take_header(const std::byte* from, std::size_t bytes) {
    const std::size_t part = std::min(sizeof header_ - have_, bytes);
    std::memcpy(reinterpret_cast<std::byte*>(&header_) + have_, from, part);
    have_ += part;
    if (have_ == sizeof header_) have_ = 0;
    return part;
  }
  bool header_is_whole() const { return have_ == 0; }
  const Header& header() const { return header_; }

  // --- the payload of the frame
  void payload_begins() { left_ = header_.bytes; }
  /// Returns the number of bytes of the payload that have not arrived.
  std::size_t left() const { return left_; }
  /// Returns the number of bytes of the payload that have arrived.
  std::uint64_t done() const { return header_.bytes - left_; }
  void landed(std::size_t bytes) { left_ -= bytes; }

  // --- the request that the frame belongs to
  /// Returns the number of the peer's requests that were executed, which is also the number of the next
  /// request.
  std::uint32_t handled() const { return handled_; }
  /// Returns true when a request of several frames is in progress.
  bool is_under_way() const { return next_.has_value(); }
  /// Returns why the frame is out of order, as the first frame of a request or as a later one, or null when
  /// it is in order.
  const char* why_misplaced() const {
    if (!next_) return header_.number == handled_ ? nullptr : "a request does not have the next number";
    const bool goes_on = header_.op == next_->op && header_.number == next_->number &&
                         header_.key == next_->key && header_.addr == next_->addr &&
                         header_.total == next_->total && header_.extra == next_->extra &&
                         (header_.flags & ~flag_ack) == next_->flags;
    return goes_on ? nullptr : "a frame does not continue where the one before it ended";
  }
  /// Must be called when the frame has ended and the request continues with another frame.
  void expect_next() {
    written_ += header_.bytes;
    next_ = header_;
    next_->addr += header_.bytes;
    next_->total -= header_.bytes;
  }
  /// Returns the number of bytes of the whole request. This frame must be the last frame of its request.
  std::uint32_t request_bytes() const { return written_ + header_.bytes; }
  void request_is_done() {
    ++handled_;
    next_.reset();
    written_ = 0;
  }

 private:
  std::uint32_t handled_ = 0;
  std::size_t have_ = 0;  ///< number of bytes in header_
  std::size_t left_ = 0;
  Header header_;
  std::optional<Header> next_;  ///< the header that must follow in the request in progress
  std::uint32_t written_ = 0;   ///< bytes of that request in frames before this one
};

}  // namespace rdma_rpc::fabric::tcp

// Collects the frames that are sent together by one sendmsg(): their headers, and references to the payload
// in registered memory. Bulk payload is not copied. A payload of a few bytes is copied behind its header,
// because a separate segment costs the kernel more. Frames stay here until the socket accepts them. The queue
// pair fills and sends the batch, on the device's thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <vector>

#include "fabric/software/key_table.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class FrameBatch {
 public:
  static constexpr std::size_t kFrames = 64, kSegments = 64;
  /// Limit of payload bytes. A small frame that is created now waits for these bytes, in addition to
  /// TCP_NOTSENT_LOWAT.
  static constexpr std::size_t kBytes = kFrameBytesMax;

  bool empty() const { return frames_ == sent_frames_; }
  /// Returns whether one more frame with this number of segments fits.
  bool has_room(std::size_t segments) const {
    return frames_ < kFrames && segments_ + segments + 1 <= kSegments &&
           copied_ + sizeof(Header) + kAlwaysCopied <= kCopies;
  }
  /// A payload of at most this many bytes is copied behind the header of every frame that has_room() allows.
  static constexpr std::size_t kAlwaysCopied = sizeof(AtomicOperands);
  std::size_t bytes() const { return bytes_; }
  void clear();

  /// Adds a frame; add_segment() adds its payload afterwards. `key` is the key through which the peer reads
  /// this payload, or 0.
  void add_frame(const Header& header, std::uint32_t key = 0);
  void add_segment(const void* data, std::size_t bytes);

  /// Returns the segments that are left to send.
  std::span<iovec> rest() { return {&iov_[next_segment_], segments_ - next_segment_}; }
  void sent(std::size_t bytes);
  /// Returns whether the memory of every unsent READ response may still be read.
  bool may_be_read(software::KeyTable& keys, std::uint32_t qp_num) const;
  /// Copies the unsent payload that the frames in the batch would read through this key, because from now on
  /// nothing may be read through it.
  void keep(std::uint32_t key);
  /// Returns a copy of the unsent part of a frame in progress, and drops the other frames. The result is
  /// empty when no frame is in progress.
  std::vector<std::byte> rest_of_frame() const;

 private:
  static constexpr std::size_t kCopies = 8 << 10;

  struct Frame {
    std::size_t end = 0;  ///< offset of the frame's end in the batch
    std::uint32_t key = 0;
    std::uint64_t addr = 0;
    std::uint64_t bytes = 0;
    std::size_t segment = 0;  ///< for a frame with a key: index of its payload in `iov_`
  };
  void add_copy(const void* data, std::size_t bytes);
  void add_bytes(void* data, std::size_t bytes);
  /// Returns how many bytes of the next frame have been sent.
  std::size_t begun() const { return sent_ - (sent_frames_ == 0 ? 0 : about_[sent_frames_ - 1].end); }

  std::array<std::byte, kCopies> copies_;  ///< headers, and small payloads behind them
  std::array<Frame, kFrames> about_;
  std::array<iovec, kSegments> iov_;
  std::size_t frames_ = 0, sent_frames_ = 0, segments_ = 0, next_segment_ = 0, copied_ = 0, bytes_ = 0,
              sent_ = 0;
  std::vector<std::byte> kept_;  ///< see keep(); at most one READ response is in progress
};

}  // namespace rdma_rpc::fabric::tcp

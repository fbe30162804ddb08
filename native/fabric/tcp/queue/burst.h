// Frames on their way into the socket: headers of our own, and where in registered memory the bytes behind
// them lie. One sendmsg() gathers them. Bulk is not copied; a few bytes are, behind their header, since a
// piece of its own costs the kernel more. What the socket does not take stays until it does. Filled and sent
// by the queue pair, on the device's thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <vector>

#include "fabric/software/key_table.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class Burst {
 public:
  static constexpr std::size_t kFrames = 64, kPieces = 64;
  /// Of bulk: what a small frame that comes now waits for, besides TCP_NOTSENT_LOWAT.
  static constexpr std::size_t kBytes = kFrameBytesMax;

  bool empty() const { return frames_ == sent_frames_; }
  /// For one more frame of so many pieces.
  bool has_room(std::size_t pieces) const {
    return frames_ < kFrames && pieces_ + pieces + 1 <= kPieces && copied_ + sizeof(Header) <= kCopies;
  }
  std::size_t bytes() const { return bytes_; }
  void clear();

  /// Adds a frame; its payload follows by add_piece(). `key`: of the peer's that its bytes are read through,
  /// or 0.
  void add_frame(const Header& header, std::uint32_t key = 0);
  void add_piece(const void* data, std::size_t bytes);

  /// What is left to send.
  std::span<iovec> rest() { return {&iov_[next_piece_], pieces_ - next_piece_}; }
  void sent(std::size_t bytes);
  /// Whether the memory of every answer that is left may still be read.
  bool may_be_read(software::KeyTable& keys, std::uint32_t qp_num) const;
  /// What is still to be read through this key for frames that are formed is copied now: nothing will be read
  /// through it any more.
  void keep(std::uint32_t key);
  /// A copy of what is left of the frame under way; the others are forgotten. Empty between two frames.
  std::vector<std::byte> rest_of_frame() const;

 private:
  static constexpr std::size_t kCopies = 8 << 10;

  struct Frame {
    std::size_t end = 0;  ///< bytes of the burst up to its end
    std::uint32_t key = 0;
    std::uint64_t addr = 0;
    std::uint64_t bytes = 0;
    std::size_t piece = 0;  ///< where they are in `iov_`, with a key
  };
  void add_copy(const void* data, std::size_t bytes);
  void add_bytes(void* data, std::size_t bytes);
  /// What has been sent of the next frame.
  std::size_t begun() const { return sent_ - (sent_frames_ == 0 ? 0 : about_[sent_frames_ - 1].end); }

  std::array<std::byte, kCopies> copies_;  ///< headers, and small payloads behind them
  std::array<Frame, kFrames> about_;
  std::array<iovec, kPieces> iov_;
  std::size_t frames_ = 0, sent_frames_ = 0, pieces_ = 0, next_piece_ = 0, copied_ = 0, bytes_ = 0, sent_ = 0;
  std::vector<std::byte> kept_;  ///< see keep(); one answer at most is under way
};

}  // namespace rdma_rpc::fabric::tcp

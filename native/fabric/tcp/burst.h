// Frames on their way into the socket: headers of our own, and where in registered memory the bytes behind
// them lie. Nothing is copied: one sendmsg() gathers them. What the socket does not take stays until it does.
// Filled and sent by the queue pair, on the device's thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <vector>

#include "fabric/tcp/keys.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class Burst {
 public:
  static constexpr std::size_t kFrames = 16, kPieces = 64;
  /// Of bulk: what a small frame that comes now waits for, besides TCP_NOTSENT_LOWAT.
  static constexpr std::size_t kBytes = kFrameBytesMax;

  bool empty() const { return frames_ == sent_frames_; }
  /// For one more frame of so many pieces.
  bool has_room(std::size_t pieces) const { return frames_ < kFrames && pieces_ + pieces + 1 <= kPieces; }
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
  bool may_be_read(KeyTable& keys, std::uint32_t qp_num) const;
  /// What is still to be read through this key for frames that are formed is copied now: nothing will be read
  /// through it any more.
  void keep(std::uint32_t key);
  /// A copy of what is left of the frame under way; the others are forgotten. Empty between two frames.
  std::vector<std::byte> rest_of_frame() const;

 private:
  struct Frame {
    std::size_t end_piece = 0;  ///< behind its last one
    std::uint32_t key = 0;
    std::uint64_t addr = 0;
    std::uint64_t bytes = 0;
  };
  std::array<Header, kFrames> headers_;
  std::array<Frame, kFrames> about_;
  std::array<iovec, kPieces> iov_;
  std::size_t frames_ = 0, sent_frames_ = 0, pieces_ = 0, next_piece_ = 0, bytes_ = 0;
  bool cut_ = false;             ///< the next frame has been sent in part
  std::vector<std::byte> kept_;  ///< see keep(); one answer at most is under way
};

}  // namespace rdma_rpc::fabric::tcp

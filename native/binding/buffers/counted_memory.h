// Smooths the amount of arena memory that V8 counts. V8 adds the size of each ArrayBuffer to the external
// memory of its heap, and subtracts it when the buffer is collected. V8 begins a full collection when the sum
// has grown by about 30 MiB since the last one. However, the memory of a returned lease stays in the arena
// and is lent again. Therefore memory does not really grow in a program that drops received messages.
// Nevertheless, 4 s of 1 MiB responses caused 50 to 70 full collections, which took more time than the
// responses. Therefore returned memory stays counted until the arena lends it again. V8 sees the maximum that
// is lent at one time, instead of a sawtooth.
//
// This class only subtracts amounts that it has added before, so V8's count never falls below the amount that
// V8 itself has added. If V8's count became lower than that, Node 24 and later would abort the process, even
// when an environment is ending. Owned by BlockBuffers, which passes each change to V8, on the JS thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rdma_rpc::binding {

class CountedMemory {
 public:
  /// Up to this fraction (1/n) of the arena stays counted. Only full collections find old leases that were
  /// dropped. V8 must see memory beyond this limit as growth, because otherwise such leases would fill the
  /// arena.
  static constexpr std::size_t kArenaShare = 4;

  explicit CountedMemory(std::size_t arena_bytes) : most_(arena_bytes / kArenaShare) {}

  /// Records that V8 has added a new buffer of this size to its count. Returns by how many bytes to change
  /// V8's count.
  std::int64_t made(std::size_t bytes) {
    out_ += bytes;
    lately_ = keeps_ = true;
    const std::size_t again = std::min(kept_, bytes);
    kept_ -= again;
    return -static_cast<std::int64_t>(again);
  }
  /// Records that V8 has subtracted a buffer of this size. Returns by how many bytes to change V8's count.
  std::int64_t freed(std::size_t bytes) {
    out_ -= std::min(out_, bytes);
    if (!keeps_) return 0;
    const std::size_t added = std::min(bytes, most_ - std::min(most_, out_ + kept_));
    kept_ += added;
    return static_cast<std::int64_t>(added);
  }
  /// Stops counting returned memory when the program is idle: nothing was lent since the last call, about 500
  /// ms ago. The arena gives the memory of an idle program back to the system.
  std::int64_t rest() {
    if (std::exchange(lately_, false)) return 0;
    keeps_ = false;
    return close();
  }
  /// Stops counting returned memory. Returns by how many bytes to change V8's count.
  std::int64_t close() { return -static_cast<std::int64_t>(std::exchange(kept_, 0)); }

  /// Returns the number of bytes that stay counted although no buffer has them.
  std::size_t kept() const { return kept_; }

 private:
  std::size_t most_;
  std::size_t out_ = 0;   // bytes of buffers that V8 has
  std::size_t kept_ = 0;  // bytes that stay counted, at most what this class has added to V8's count
  bool keeps_ = false;    // false for an idle program
  bool lately_ = false;   // a buffer was made since the last rest()
};

}  // namespace rdma_rpc::binding

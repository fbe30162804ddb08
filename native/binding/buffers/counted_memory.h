// What V8 counts of the arena's memory. V8 adds the size of each ArrayBuffer to the external memory of its
// heap, takes it off when the buffer is collected, and begins a full collection when the sum has grown by
// some 30 MiB since the last one. But the memory of a lease that comes back stays with the arena and is lent
// again, so for a program that drops what it receives that growth is none: 50 to 70 full collections in 4 s
// of 1 MiB answers, which took more time than the answers. So memory that came back stays counted until the
// arena lends it again, and V8 sees its most bytes out at one time instead of a saw.
//
// Each change is one that this class has added before, or adds now: what V8 counts never falls below what V8
// has added by itself, which it would answer by ending the process (Node 24 and later), also when an
// environment ends in the middle. Owned by BlockBuffers, which tells V8 each change; on the JS thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rdma_rpc::binding {

class CountedMemory {
 public:
  /// The share of the arena up to which memory stays counted. Leases that grew old are found by full
  /// collections alone, so V8 must see those beyond it as growth: otherwise they would fill the arena.
  static constexpr std::size_t kArenaShare = 4;

  explicit CountedMemory(std::size_t arena_bytes) : most_(arena_bytes / kArenaShare) {}

  /// V8 has added a new buffer of this size. Returns by how many bytes its count is to change.
  std::int64_t made(std::size_t bytes) {
    out_ += bytes;
    lately_ = keeps_ = true;
    const std::size_t again = std::min(kept_, bytes);
    kept_ -= again;
    return -static_cast<std::int64_t>(again);
  }
  /// V8 has taken a buffer of this size off. Returns by how many bytes its count is to change.
  std::int64_t freed(std::size_t bytes) {
    out_ -= std::min(out_, bytes);
    if (!keeps_) return 0;
    const std::size_t added = std::min(bytes, most_ - std::min(most_, out_ + kept_));
    kept_ += added;
    return static_cast<std::int64_t>(added);
  }
  /// Called now and then. When nothing was lent since the last time, all that stayed counted is given up, and
  /// what comes back from now on: the arena gives the memory of an idle program back to the system.
  std::int64_t rest() {
    if (std::exchange(lately_, false)) return 0;
    keeps_ = false;
    return close();
  }
  /// What is to be taken off at the end.
  std::int64_t close() { return -static_cast<std::int64_t>(std::exchange(kept_, 0)); }

  /// Bytes that stay counted although no buffer has them.
  std::size_t kept() const { return kept_; }

 private:
  std::size_t most_;
  std::size_t out_ = 0;   // of buffers that V8 has
  std::size_t kept_ = 0;  // always at most what this class has added to V8's count
  bool keeps_ = false;    // nothing is kept of an idle program
  bool lately_ = false;   // a buffer was made since the last rest()
};

}  // namespace rdma_rpc::binding

// Keeps the buffers in which messages that came in segments are reassembled for JS. All buffers have the same
// size. An event owns its buffer until JS has read it. Peers cannot access this memory. Pages are allocated
// at first use, and the same few buffers are reused. The context owns this object and uses it on the
// context's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/free_list.h"
#include "session/anonymous_memory.h"
#include "session/limits.h"

namespace rdma_rpc::session {

class ReassembledMessages {
 public:
  ReassembledMessages() {
    for (std::uint32_t i = kReassembledMessages; i > 0; --i) free_.give(i - 1);
  }
  /// Returns null when the system has no address space for the buffers.
  std::byte* data() const { return memory_.data(); }
  static constexpr std::size_t bytes() { return std::size_t{kReassembledMessages} * kStride; }

  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  /// Returns the offset of a free buffer. A buffer is always free when the context calls this, because it
  /// polls at most as many completions as there are free buffers.
  std::optional<std::uint32_t> take() {
    const std::optional<std::uint32_t> index = free_.take();
    if (!index) return std::nullopt;
    return *index * kStride;
  }
  void release(std::uint32_t offset) { free_.give(offset / kStride); }

 private:
  // The stride is not a power of two, because that would put the starts of all buffers into the same few
  // cache sets.
  static constexpr std::uint32_t kStride = kSegmentedBytesMax + 64;
  AnonymousMemory memory_{bytes()};
  fabric::FreeList<> free_;
};

}  // namespace rdma_rpc::session

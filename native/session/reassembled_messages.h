// Buffers in which messages that came in segments are reassembled for JS. They have one size; an event owns
// its buffer until JS has read it. This memory cannot be accessed by peers. Pages are allocated at first use,
// and the same few buffers are reused. Owned by the context, on its thread.
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
  /// Returns null when the system has no address space for it.
  std::byte* data() const { return memory_.data(); }
  static constexpr std::size_t bytes() { return std::size_t{kReassembledMessages} * kStride; }

  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  /// Returns the offset of a free buffer. There always is one, since the context polls no more completions
  /// than there are free buffers.
  std::optional<std::uint32_t> take() {
    const std::optional<std::uint32_t> index = free_.take();
    if (!index) return std::nullopt;
    return *index * kStride;
  }
  void release(std::uint32_t offset) { free_.give(offset / kStride); }

 private:
  // Not a power of two: the starts of all buffers would lie in the same few cache sets.
  static constexpr std::uint32_t kStride = kSegmentedBytesMax + 64;
  AnonymousMemory memory_{bytes()};
  fabric::FreeList<> free_;
};

}  // namespace rdma_rpc::session

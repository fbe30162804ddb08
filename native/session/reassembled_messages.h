// Where messages that came in segments are put together for JS: places of one size, each of which an event
// has until JS has read it. Memory of our own, which no peer reaches; pages come with first use, and the same
// few places are used again and again. Owned by the context, on its thread.
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
  /// Null: the system has no addresses for it.
  std::byte* data() const { return memory_.data(); }
  static constexpr std::size_t bytes() { return std::size_t{kReassembledMessages} * kStride; }

  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  /// Returns the offset of a place. The context takes no more completions than there are places for, so that
  /// there always is one.
  std::optional<std::uint32_t> take() {
    const std::optional<std::uint32_t> place = free_.take();
    if (!place) return std::nullopt;
    return *place * kStride;
  }
  void release(std::uint32_t offset) { free_.give(offset / kStride); }

 private:
  // No power of two: the starts of all places would lie in the same few lines of the cache.
  static constexpr std::uint32_t kStride = kSegmentedBytesMax + 64;
  AnonymousMemory memory_{bytes()};
  fabric::FreeList<> free_;
};

}  // namespace rdma_rpc::session

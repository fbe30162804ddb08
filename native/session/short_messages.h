// Keeps the buffers in which JS reads short messages that a queue pair delivers outside of their receives
// (Wc::apart). All sessions share the same few buffers. Even a thousand sessions therefore use only memory
// that stays in the CPU cache, both here and in JS. A buffer counts as a receive slot of its session until it
// is recycled, and its number is at least kShortMessageSlots. The receive itself is reposted at once. The
// context owns this object and uses it on the context's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "session/boundary.h"
#include "session/limits.h"

namespace rdma_rpc::session {

class ShortMessages {
 public:
  /// Size of a buffer, in bytes.
  static constexpr std::uint32_t kBytesMax = 256;
  static constexpr std::size_t kBytes = std::size_t{kShortMessages} * kBytesMax;

  ShortMessages() {
    for (std::uint32_t index = 0; index < kShortMessages; ++index) give(kShortMessages - 1 - index);
  }

  static bool has(std::uint32_t receive_slot) { return receive_slot >= boundary::kShortMessageSlots; }
  /// Returns a buffer for a message of this session. Returns std::nullopt when the message is too long or all
  /// buffers are in use; the message then stays in the session's own memory.
  std::optional<std::uint32_t> take(std::uint32_t session, std::uint32_t bytes) {
    if (free_count_ == 0 || bytes > kBytesMax) return std::nullopt;
    const std::uint32_t index = free_[--free_count_];
    owners_[index] = session;
    return boundary::kShortMessageSlots + index;
  }
  /// Releases a buffer, if it still belongs to this session.
  void release(std::uint32_t receive_slot, std::uint32_t session) {
    const std::uint32_t index = receive_slot - boundary::kShortMessageSlots;
    if (owners_[index] == session) give(index);
  }
  /// Releases all buffers of a session that has ended.
  void leave(std::uint32_t session) {
    for (std::uint32_t index = 0; index < kShortMessages; ++index) {
      if (owners_[index] == session) give(index);
    }
  }
  std::uint32_t free() const { return free_count_; }
  std::uint32_t kept_by(std::uint32_t session) const {
    std::uint32_t kept = 0;
    for (const std::uint32_t owner : owners_) kept += owner == session ? 1u : 0u;
    return kept;
  }

  /// Returns the memory of all buffers.
  std::byte* data() { return memory_.data(); }
  static std::uint32_t offset_of(std::uint32_t receive_slot) {
    return (receive_slot - boundary::kShortMessageSlots) * kBytesMax;
  }

 private:
  static constexpr std::uint32_t kNoSession = ~0u;  ///< equals no session number, because session numbers
                                                    ///< have 31 bits
  void give(std::uint32_t index) {
    owners_[index] = kNoSession;
    free_[free_count_++] = index;
  }

  alignas(64) std::array<std::byte, kBytes> memory_;
  std::array<std::uint32_t, kShortMessages> owners_, free_;
  std::uint32_t free_count_ = 0;
};

}  // namespace rdma_rpc::session

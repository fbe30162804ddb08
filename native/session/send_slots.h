// Keeps the send slots of a context: registered memory in which JS encodes messages, and the stack of free
// slots from which JS pops. Behind the send slots are a few long slots, for messages that are sent in
// segments. The context owns them. The sessions of the context use the slots, and JS uses them through shared
// arrays, all on the context's thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/free_list.h"
#include "session/boundary.h"
#include "session/limits.h"

namespace rdma_rpc::session {

class SendSlots {
 public:
  /// `control`, `free_stack` and `by_session` are the shared arrays. `free_stack` has room for `count`
  /// numbers, and `by_session` has slots::words words for each of kSessionsMax sessions.
  SendSlots(std::unique_ptr<fabric::HostMemory> memory, std::unique_ptr<fabric::MemoryRegion> region,
            std::uint32_t count, std::uint32_t stride, std::uint32_t long_count, std::int32_t* control,
            std::int32_t* free_stack, std::int32_t* by_session)
      : memory_(std::move(memory)),
        region_(std::move(region)),
        count_(count),
        stride_(stride),
        long_count_(long_count),
        control_(control),
        free_stack_(free_stack),
        by_session_(by_session),
        session_of_(count, kNoSession) {
    for (std::uint32_t i = long_count; i > 0; --i) free_long_.give(count + i - 1);
    // The stack reuses the slots that were freed last, so the same few slots stay in the cache.
    for (std::uint32_t i = 0; i < count; ++i) free_stack_[i] = static_cast<std::int32_t>(count - 1 - i);
    control_[boundary::ctl::free_slots] = static_cast<std::int32_t>(count);
  }

  /// Returns the stride of receives, in bytes. The stride is not a power of two, because that would put the
  /// headers of all slots into the same few cache sets.
  static std::uint32_t stride_for(std::uint32_t slot_bytes) {
    return kSlotHeadroom + ((slot_bytes + 63) & ~63u);
  }
  /// Stride of send slots, in bytes.
  static std::uint32_t send_stride_for(std::uint32_t slot_bytes) {
    return stride_for(slot_bytes) + kSlotTail;
  }

  /// Stride of long slots: room for the message, and for a gap after each segment.
  static constexpr std::uint32_t kLongStride =
      kSlotHeadroom + kSegmentedBytesMax + (kSegmentsMax + 1) * kSegmentGap + kSlotTail;
  /// Returns the number of long slots, or 0 when messages are not sent in segments.
  static std::uint32_t long_count_for(std::uint32_t segmented_bytes) {
    return segmented_bytes == 0 ? 0 : kLongSlots;
  }
  static std::size_t bytes_for(std::uint32_t count, std::uint32_t stride, std::uint32_t long_count) {
    return std::size_t{count} * stride + std::size_t{long_count} * kLongStride;
  }

  std::byte* payload(std::uint32_t slot) {
    const std::size_t start = is_long(slot)
                                  ? std::size_t{count_} * stride_ + std::size_t{slot - count_} * kLongStride
                                  : std::size_t{slot} * stride_;
    return memory_->data() + start + kSlotHeadroom;
  }
  bool is_long(std::uint32_t slot) const { return slot >= count_; }
  /// Releases a long slot that JS has taken and not submitted.
  void give_long_back(std::int32_t slot) {
    if (valid(slot) && is_long(static_cast<std::uint32_t>(slot))) release(static_cast<std::uint32_t>(slot));
  }
  std::uint32_t count_long() const { return long_count_; }
  std::uint32_t free_long() const { return static_cast<std::uint32_t>(free_long_.size()); }
  /// Takes a long slot. Returns -1 when none is free.
  std::int32_t take_long() {
    const std::optional<std::uint32_t> slot = free_long_.take();
    return slot ? static_cast<std::int32_t>(*slot) : -1;
  }
  /// Ends the registration before the device is closed. The memory stays valid for JS.
  void leave_device() { region_.reset(); }
  std::uint32_t lkey() const { return region_->lkey(); }
  std::uint32_t count() const { return count_; }
  std::uint32_t stride() const { return stride_; }
  std::byte* data() { return memory_->data(); }
  std::size_t bytes() const { return memory_->size(); }

  bool valid(std::int32_t slot) const {
    return slot >= 0 && static_cast<std::uint32_t>(slot) < count_ + long_count_;
  }
  void release(std::uint32_t slot) {
    if (is_long(slot)) return free_long_.give(slot);
    let_go(slot);
    free_stack_[control_[boundary::ctl::free_slots]++] = static_cast<std::int32_t>(slot);
  }
  /// Takes a slot for a frame that native code creates itself. Returns -1 when none is free.
  std::int32_t take() {
    std::int32_t& top = control_[boundary::ctl::free_slots];
    return top == 0 ? -1 : free_stack_[--top];
  }
  /// Counts the slot for the session with that index until it is released.
  void hold(std::uint32_t slot, std::uint32_t index) {
    if (is_long(slot)) return;
    session_of_[slot] = static_cast<std::uint16_t>(index);
    ++word(index, boundary::slots::held);
  }
  /// Returns the slot to JS.
  void let_go(std::uint32_t slot) {
    if (is_long(slot)) return;
    const std::uint16_t index = std::exchange(session_of_[slot], kNoSession);
    if (index != kNoSession) --word(index, boundary::slots::held);
  }
  /// Returns whether the session may take a slot. Because of this rule, a session whose frames cannot be
  /// sent, for example because its peer returns no credits, leaves slots to the others. JS uses the same rule
  /// (runtime/boundary/outgoing/outgoing.ts).
  bool within_share(std::uint32_t index) {
    const auto held = static_cast<std::uint32_t>(word(index, boundary::slots::held));
    const std::uint32_t reserved = count_ / kReservedSlots;
    if (free() > reserved) return held <= kSlotShare * free();
    const auto sessions = static_cast<std::uint32_t>(control_[boundary::ctl::sessions]);
    return free() != 0 && held < std::max(1u, reserved / std::max(1u, sessions));
  }
  /// Returns whether JS has found no slot for this session, and clears the flag.
  bool take_wanted(std::uint32_t index) {
    return std::exchange(word(index, boundary::slots::wanted), 0) != 0;
  }
  bool wanted(std::uint32_t index) { return word(index, boundary::slots::wanted) != 0; }
  std::uint32_t free() const { return static_cast<std::uint32_t>(control_[boundary::ctl::free_slots]); }

 private:
  static constexpr std::uint16_t kNoSession = 0xffff;
  std::int32_t& word(std::uint32_t index, int which) {
    return by_session_[index * boundary::slots::words + static_cast<std::uint32_t>(which)];
  }

  std::unique_ptr<fabric::HostMemory> memory_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::uint32_t count_, stride_, long_count_;
  std::int32_t* control_;
  std::int32_t* free_stack_;
  std::int32_t* by_session_;
  std::vector<std::uint16_t> session_of_;  ///< the session index of each slot that native code holds
  fabric::FreeList<> free_long_;
};

}  // namespace rdma_rpc::session

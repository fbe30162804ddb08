// Collects a message that arrives in segments until it is complete. The SEGMENT frames stay in their
// receives. A peer that never completes its message therefore uses only its own credits. Link owns this
// object and uses it on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "session/limits.h"
#include "session/link/receive_slot.h"

namespace rdma_rpc::session {

class Segments {
 public:
  bool empty() const { return parts_.empty(); }
  /// Returns the call word of the message.
  std::uint32_t call() const { return call_; }
  std::uint32_t bytes() const { return bytes_; }

  /// Adds the next segment: `bytes` bytes at `data`, in receive slot `slot`. Returns null, or an error text
  /// when the peer has broken a rule.
  const char* add(std::uint32_t call, ReceiveSlot slot, const std::byte* data, std::uint32_t bytes) {
    if (!empty() && call != call_) return "a segment of one message among the segments of another";
    if (parts_.size() == kSegmentsMax || bytes > kSegmentedBytesMax - bytes_) return kTooLong;
    call_ = call;
    bytes_ += bytes;
    parts_.push_back({data, bytes, slot});
    return nullptr;
  }
  void copy_to(std::byte* to) const {
    for (const Part& part : parts_) {
      std::memcpy(to, part.data, part.bytes);
      to += part.bytes;
    }
  }
  /// Calls `f(slot)` for each segment, and removes all segments.
  template <class F>
  void clear(F&& f) {
    for (const Part& part : parts_) f(part.slot);
    parts_.clear();
    bytes_ = 0;
  }

  static constexpr const char* kTooLong = "a message in segments that is too long";

 private:
  struct Part {
    const std::byte* data;
    std::uint32_t bytes;
    ReceiveSlot slot;
  };
  std::vector<Part> parts_;
  std::uint32_t call_ = 0, bytes_ = 0;
};

}  // namespace rdma_rpc::session

// Manages the receives that the sessions of a context share, on a device with shared receive queues. This
// class has their memory, knows which session uses which of them, and decides how many the peer of each
// session may use (credit_pool.h). A new session gets few credits, and a busy session gets more. When the
// session is no longer busy, its credits are not renewed, so it has fewer again. Shared owns this object;
// Link and Context use it on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/free_list.h"
#include "fabric/receive_queue.h"
#include "session/anonymous_memory.h"
#include "session/link/credit_pool.h"

namespace rdma_rpc::session {

/// kReceiveBit marks the work request number of a receive. The other bits contain the number of a session, or
/// kAllSessions for a shared receive.
inline constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;
inline constexpr std::uint32_t kAllSessions = 0x7fffffff;

class SharedReceives {
 public:
  struct Member {
    CreditPool::Account account{};
    std::uint32_t target = 0;    ///< number of credits that the session should have at present
    std::uint32_t taken = 0;     ///< number of receives that have completed and are not reposted yet
    std::uint32_t overflow = 0;  ///< the session's first slot behind the receives, see kOverflowSlots
    std::uint32_t frames = 0;    ///< number of frames since `since_ns`
    std::uint64_t since_ns = 0;
  };

  SharedReceives(fabric::Device& device, fabric::CompletionQueue& cq, std::uint32_t stride)
      : device_(device), cq_(cq), stride_(stride) {}
  SharedReceives(const SharedReceives&) = delete;
  SharedReceives& operator=(const SharedReceives&) = delete;

  /// Adds a session whose peer may send up to `most` frames at once. Returns false when the session must have
  /// its own receives.
  bool join(Member& member, std::uint32_t most);
  /// Removes a session whose queue pair is gone, and reposts its receives.
  void leave(Member& member, std::uint32_t session);

  /// Releases the shared queue and the registrations before the device is closed, when no session is left.
  void leave_device() {
    queue_.reset();
    regions_.clear();
  }

  fabric::ReceiveQueue* queue() const { return queue_.get(); }
  std::byte* data() const { return memory_.data(); }
  std::size_t size() const { return std::size_t{slots_} * stride_; }
  /// Slots with this number and higher ones are overflow slots.
  std::uint32_t first_overflow_slot() const { return capacity_; }
  /// Returns the number of bytes that are registered and therefore pinned.
  std::size_t registered_bytes() const { return std::size_t{registered()} * stride_; }
  /// Returns the number of receives that the device has refused. Each later post offers them again.
  std::uint32_t refused() const { return registered() - credit_pool_.receives(); }

  /// Records that a frame for the session has arrived in slot `slot`.
  void came(Member& member, std::uint32_t session, std::uint32_t slot) {
    ++member.taken;
    ++member.frames;
    owner_[slot] = session;
    --posted_;
  }
  /// Records a frame of a session that no longer exists.
  void came_for_ended_session(std::uint32_t slot);
  /// Reposts slots of the session. Returns how many more credits its peer gets, or std::nullopt when the
  /// device refuses.
  std::optional<std::uint32_t> post(Member& member, std::span<const std::uint32_t> slots,
                                    std::uint64_t now_ns);
  /// Returns the number of frames that may arrive now, for tests.
  std::uint32_t posted() const { return posted_; }

 private:
  static constexpr std::uint32_t kNoSession = ~std::uint32_t{0}, kRefused = kNoSession - 1;
  std::uint32_t registered() const { return static_cast<std::uint32_t>(regions_.size()) * kSharedChunk; }
  bool open(std::uint32_t most);
  bool grow(std::uint32_t wanted);
  bool post_slots(std::span<const std::uint32_t> slots);
  std::size_t offer(std::span<const std::uint32_t> slots);
  void offer_refused();
  static void adapt(Member& member, std::uint64_t now_ns);

  fabric::Device& device_;
  fabric::CompletionQueue& cq_;
  const std::uint32_t stride_;
  AnonymousMemory memory_;
  std::uint32_t slots_ = 0, capacity_ = 0;  ///< number of slots in memory, and how many of them are receives
  std::uint32_t members_ = 0, posted_ = 0;
  std::uint64_t beyond_ = 0;  ///< sum of the additional credits that members may have
  CreditPool credit_pool_;
  std::vector<std::unique_ptr<fabric::MemoryRegion>> regions_;  ///< one region for each kSharedChunk receives
  std::vector<std::uint32_t> owner_;  ///< by slot: a session, kNoSession when it is posted, or kRefused
  fabric::FreeList<> free_overflow_slots_;
  std::vector<fabric::RecvWr> wrs_;
  std::unique_ptr<fabric::ReceiveQueue> queue_;  ///< the last member, because posted receives use the others
};

}  // namespace rdma_rpc::session

// Coalesces small messages: decides whether they may wait for more to be sent with them. A sending system
// call costs much compared with a call, and the user works in batches of 16. So while the user still has
// completions to poll, whose responses come at once, its posted messages wait for those responses. A message
// never waits for something that may not come: one that is posted when all completions are polled is sent at
// once, and so are all messages of a user that takes its time. At most as many messages wait as completions
// are left to be polled, so that the peer can work on the first half of a long batch while the second half is
// made. Only for users that promise to keep polling (QpOptions::polls_on). Consulted by the completion queue,
// for its queue pairs, on the device's thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "fabric/tcp/queue/frame_batch.h"

namespace rdma_rpc::fabric::tcp {

/// `Clock` is steady_clock, or the clock of a test.
template <typename Clock>
class Coalescing {
 public:
  /// Call when completions have been returned to the user; `left` is the number that remain.
  void gave_out(std::uint64_t left) {
    if (left != 0) gave_out_ = Clock::now();
  }
  /// Whether `messages` messages of a queue pair may wait while `left` completions remain.
  bool may_wait(std::uint32_t messages, std::uint64_t left) {
    if (messages >= left || messages > FrameBatch::kFrames) return false;
    const auto now = Clock::now();
    if (now - gave_out_ > kQuick) return false;
    if (!waits_) since_ = now;
    return waits_ = true;
  }
  /// Whether a message has waited long enough.
  bool is_over() const { return waits_ && Clock::now() - since_ > kMost; }
  /// Call when no message waits any more.
  void end() { waits_ = false; }

 private:
  /// If the user polls again within this time, it is still handling a batch. A batch of small calls takes a
  /// third of this time.
  static constexpr auto kQuick = std::chrono::microseconds(30);
  /// Longest wait: as long as a batch of small calls takes. A small call of another session may have to wait
  /// that long.
  static constexpr auto kMost = std::chrono::microseconds(50);

  typename Clock::time_point gave_out_, since_;
  bool waits_ = false;
};

}  // namespace rdma_rpc::fabric::tcp

// Coalesces small messages: decides whether they may wait so that more messages are sent with them. A system
// call that sends takes long compared with a call, and the user works in batches of 16. While the user still
// has completions to poll, the user will respond to them at once. Therefore its posted messages wait for
// those responses. A message never waits for an event that may not come. A message that is posted when all
// completions have been polled is sent at once, and so are all messages of a user that works slowly. The
// number of waiting messages is at most the number of completions that are left to be polled. Therefore the
// peer can work on the first half of a long batch while the second half is being created. Coalescing is only
// for users that promise to keep polling (QpOptions::polls_on). The completion queue asks this class on
// behalf of its queue pairs, on the device's thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "fabric/tcp/queue/frame_batch.h"

namespace rdma_rpc::fabric::tcp {

/// `Clock` is steady_clock, or the clock of a test.
template <typename Clock>
class Coalescing {
 public:
  /// Must be called when completions have been returned to the user. `left` is the number of completions that
  /// remain.
  void gave_out(std::uint64_t left) {
    if (left != 0) gave_out_ = Clock::now();
  }
  /// Returns whether `messages` messages of a queue pair may wait while `left` completions remain.
  bool may_wait(std::uint32_t messages, std::uint64_t left) {
    if (messages >= left || messages > FrameBatch::kFrames) return false;
    const auto now = Clock::now();
    if (now - gave_out_ > kQuick) return false;
    if (!waits_) since_ = now;
    return waits_ = true;
  }
  /// Returns whether a message has waited long enough.
  bool is_over() const { return waits_ && Clock::now() - since_ > kMost; }
  /// Must be called when no message waits any more.
  void end() { waits_ = false; }

 private:
  /// A user that polls again within this time is still handling a batch. A batch of small calls takes a third
  /// of this time.
  static constexpr auto kQuick = std::chrono::microseconds(30);
  /// Longest wait; it equals the time of a batch of small calls. A small call of another session may have to
  /// wait that long.
  static constexpr auto kMost = std::chrono::microseconds(50);

  typename Clock::time_point gave_out_, since_;
  bool waits_ = false;
};

}  // namespace rdma_rpc::fabric::tcp

// Whether small messages may wait for more to go with them. A system call that sends is dear beside a
// call, and the user works in batches of 16; so while it has completions left to poll, the answers to
// which come at once, what it has posted waits for those. It waits for nothing that may not come: a message
// that is posted when all is polled goes at once, and so do all those of a user who takes its time. No more
// wait than are left to be polled, so that the peer has the first half of many to work on while the second
// half is made. Only for users who say that they go on polling (QpOptions::polls_on). Asked by the completion
// queue, for its queue pairs, on the device's thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "fabric/tcp/queue/burst.h"

namespace rdma_rpc::fabric::tcp {

/// `Clock`: steady_clock, or one of a test.
template <typename Clock>
class Gathering {
 public:
  /// Completions are given to the user, and so many are left.
  void gave_out(std::uint64_t left) {
    if (left != 0) gave_out_ = Clock::now();
  }
  /// Whether so many messages of a queue pair may wait, while so many completions are left.
  bool may_wait(std::uint32_t messages, std::uint64_t left) {
    if (messages >= left || messages > Burst::kFrames) return false;
    const auto now = Clock::now();
    if (now - gave_out_ > kQuick) return false;
    if (!waits_) since_ = now;
    return waits_ = true;
  }
  /// Something has waited long enough.
  bool is_over() const { return waits_ && Clock::now() - since_ > kMost; }
  /// Nothing waits any more.
  void end() { waits_ = false; }

 private:
  /// A batch of small calls takes a third of it.
  static constexpr auto kQuick = std::chrono::microseconds(30);
  /// As long as a burst of small calls takes: what a small call of another session may wait.
  static constexpr auto kMost = std::chrono::microseconds(50);

  typename Clock::time_point gave_out_, since_;
  bool waits_ = false;
};

}  // namespace rdma_rpc::fabric::tcp

// Finds the reason why a device's port is down, for the errors of queue pairs that have ended. A NIC may end
// hundreds of queue pairs at once, and each question about the port is a command to its firmware. Therefore
// one answer serves all queue pairs that end within a short time. This file is used by Device, on the thread
// that polls its queues.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "fabric/verbs/port.h"

namespace rdma_rpc::fabric::verbs {

class PortState {
 public:
  /// Returns the text of why_down(), which is at most 50 ms old.
  const std::string& why_down(ibv_context* device, std::uint8_t port) {
    constexpr std::chrono::milliseconds kFresh{50};
    const auto now = std::chrono::steady_clock::now();
    if (now >= outdated_) {
      text_ = verbs::why_down(device, port);
      outdated_ = now + kFresh;
    }
    return text_;
  }
  /// Drops the text, because the device has reported that the port has come up or gone down.
  void forget() { outdated_ = {}; }

 private:
  std::string text_;
  std::chrono::steady_clock::time_point outdated_;
};

}  // namespace rdma_rpc::fabric::verbs

// Keeps the state of a device's port: the reason why it is down, for the errors of queue pairs that have
// ended, and its MTU, for queue pairs whose requests do not move. Hundreds of queue pairs may need the answer
// at once, and each question about the port is a command to the NIC's firmware, or takes a lock of the
// kernel. Therefore one answer serves all queue pairs that need it within a short time. This file is used by
// Device, on the thread that polls its queues.
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
  /// Returns the active MTU of the port, which is at most half a second old, or 0 when the device does not
  /// say. A change of the MTU has no event.
  std::uint32_t mtu(ibv_context* device, std::uint8_t port) {
    constexpr std::chrono::milliseconds kFresh{500};
    const auto now = std::chrono::steady_clock::now();
    if (now >= mtu_outdated_) {
      ibv_port_attr attr{};
      mtu_ = ibv_query_port(device, port, &attr) == 0 ? static_cast<std::uint32_t>(attr.active_mtu) : 0;
      mtu_outdated_ = now + kFresh;
    }
    return mtu_;
  }
  /// Drops the answers, because the device has reported that the port has come up or gone down.
  void forget() { outdated_ = mtu_outdated_ = {}; }

 private:
  std::string text_;
  std::uint32_t mtu_ = 0;
  std::chrono::steady_clock::time_point outdated_, mtu_outdated_;
};

}  // namespace rdma_rpc::fabric::verbs

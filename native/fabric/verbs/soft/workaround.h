// Declares the interface between a queue pair and the workarounds for software drivers. The posting path
// knows nothing else of such drivers, and a queue pair of a correct device has no workaround.
// make_workaround() (driver.h) makes a workaround with each queue pair. The queue pair and its completion
// queue call it on the device's thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::verbs::soft {

class Workaround {
 public:
  virtual ~Workaround() = default;

  /// Returns how many of these requests, beginning with the first, may go to the device now with one
  /// doorbell. The result 0 means that the first request must be held with hold().
  virtual std::size_t may_post(std::span<const SendWr> requests) const { return requests.size(); }
  /// Keeps the request and its data until the device may have it.
  virtual void hold(const SendWr& request) { static_cast<void>(request); }
  /// Changes the chain of these requests before the library gets it. `first` is the number of the first
  /// request.
  virtual void amend(std::span<const SendWr> requests, std::uint32_t first, std::span<ibv_send_wr> chain) {
    static_cast<void>(requests), static_cast<void>(first), static_cast<void>(chain);
  }
  virtual void amend(std::span<ibv_recv_wr> chain) { static_cast<void>(chain); }
  /// Handles an internal request that the queue pair has posted.
  virtual void packet_posted(std::uint32_t number) { static_cast<void>(number); }

  /// Handles the completion of a request.
  virtual void completed() {}
  /// Returns the key that a message has invalidated although its completion lacks IBV_WC_WITH_INV, or 0.
  virtual std::uint32_t invalidated_key(const ibv_wc& completion) const {
    return static_cast<void>(completion), 0;
  }
  /// Drops the held requests, because the queue pair has gone to ERR.
  virtual void failed() {}

  /// Runs each second. `waits_s` is the time for which the device's oldest request has not moved; after
  /// `limit_s` the queue pair fails.
  virtual void second(std::uint32_t waits_s, std::uint32_t limit_s) {
    static_cast<void>(waits_s), static_cast<void>(limit_s);
  }
};

}  // namespace rdma_rpc::fabric::verbs::soft

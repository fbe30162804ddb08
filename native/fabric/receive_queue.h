// Declares a shared receive queue: receives that several queue pairs share. The number of receives depends on
// the total number of messages that can arrive at once. This number does not grow with the number of
// connections times the messages of each. Shared receive queues are available where Capabilities::max_srq_wr
// is not 0. A Device creates them and native/session uses them, on the device's thread.
//
// The following rules apply in addition to those of fabric.h (the suite checks them):
// - A message uses the oldest receive, independent of the queue pair on which the message arrives. The
//   completion has the number and the tag of that queue pair (QpOptions::tag). Messages on different queue
//   pairs complete in any order.
//  - A SEND that finds no receive fails as on a queue pair with its own receives (rnr_retry_exc_err). Other
//    queue pairs are not affected.
//  - A queue pair that goes to ERR flushes no shared receive. Only the receive in which a message was being
//    placed completes, with an error. Every receive that the queue pair has taken is polled before the flush
//    of a send posted in ERR. A user that waits for that flush before it destroys the queue pair therefore
//    loses no receive.
//  - A queue pair in ERR may have no posted request that could be flushed. Such a queue pair therefore has
//    one completion that belongs to no receive (kNoReceive), before those flushes.
#pragma once

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// Tag of a receive whose queue pair has been destroyed: the user owns the buffer again and must not read it.
inline constexpr std::uint32_t kNoTag = ~std::uint32_t{0};

/// Wc::wr_id of a completion which only reports that the queue pair with this tag has gone to ERR.
inline constexpr std::uint64_t kNoReceive = ~std::uint64_t{0};

class ReceiveQueue {
 public:
  /// Every queue pair that uses the queue must have been destroyed. Posted receives then get no completions.
  virtual ~ReceiveQueue() = default;
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  /// Posts in order, with one doorbell for all. Returns how many receives were accepted. A result below the
  /// given number means that the queue is full, or that the device has refused.
  virtual std::size_t post(std::span<const RecvWr> requests) = 0;
  /// Asks for one AsyncEvent srq_limit_reached as soon as fewer than `receives` are posted (ibv_modify_srq
  /// with IBV_SRQ_LIMIT); 0 cancels this. Returns "", or why the device has no such limit.
  virtual std::string arm_limit(std::uint32_t receives);
  /// Returns the number of receives that may be posted at once.
  std::uint32_t capacity() const { return capacity_; }

 protected:
  explicit ReceiveQueue(std::uint32_t capacity) : capacity_(capacity) {}
  const std::uint32_t capacity_;
};

}  // namespace rdma_rpc::fabric

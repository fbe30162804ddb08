// A shared receive queue: receives that the queue pairs on it have in common, instead of each its own, so
// that many connections need as many as may come in at once and not as many as may come in on each. Where
// Capabilities::max_srq_wr is not 0. Made by a Device, used by native/session, on the device's thread.
//
// Rules, beside those of fabric.h (the suite checks them):
//  - A message takes the oldest receive, whichever queue pair it comes to; its completion has the number and
//    the tag of that queue pair (QpOptions::tag). Two that come to different queue pairs complete in any
//    order.
//  - A SEND that finds none ends as one that finds none on a queue pair of its own (rnr_retry_exc_err), and
//    ends no other queue pair.
//  - A queue pair that goes to ERR flushes none of them; only the one that a message was being put into
//    completes, with an error. Whatever it has taken is polled before the flush of a send that was posted in
//    ERR: who waits for that before it destroys the queue pair loses no receive.
//  - Since nothing that is posted need flush, a queue pair in ERR has one completion of its own, of no receive
//    (kNoReceive), before those flushes.
#pragma once

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// The tag of a receive that nobody may read, and that is its user's again: the queue pair that took it is
/// gone.
inline constexpr std::uint32_t kNoTag = ~std::uint32_t{0};

/// Wc::wr_id of a completion which only says that the queue pair with this tag has gone to ERR.
inline constexpr std::uint64_t kNoReceive = ~std::uint64_t{0};

class ReceiveQueue {
 public:
  virtual ~ReceiveQueue() = default;  ///< every queue pair on it is gone; no completions of what is posted
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  /// Posts in order, with one doorbell for all. Returns how many were taken; fewer than given means that it
  /// is full, or that the device has refused.
  virtual std::size_t post(std::span<const RecvWr> requests) = 0;
  /// As many as may be posted at once.
  std::uint32_t capacity() const { return capacity_; }

 protected:
  explicit ReceiveQueue(std::uint32_t capacity) : capacity_(capacity) {}
  const std::uint32_t capacity_;
};

}  // namespace rdma_rpc::fabric

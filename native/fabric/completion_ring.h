// Keeps the completions of one queue in memory of this process. Queue pairs write them, and poll() removes
// them. The ring grows to the number of completions that its queue pairs can have outstanding (make_room), so
// it never overflows; before the first queue pair it uses almost no memory. This file is used by the
// completion queues of tcp and of the simulation, on their device's thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// A completion, with the information that its queue pair gets when it is polled.
template <typename Pair>
struct Completion {
  Wc wc;
  Pair* qp;
  bool receive;
  std::uint64_t send_end;  ///< sends with a lower index than this are complete
  bool solicited = false;  ///< wakes a user that has called arm_solicited()
};

template <typename Pair>
class CompletionRing {
 public:
  std::uint64_t size() const { return tail_ - head_; }
  /// Makes room for the completions of all requests that one more queue pair can have outstanding.
  void make_room(std::uint32_t requests) {
    room_ += requests;
    if (room_ <= ring_.size()) return;
    std::vector<Completion<Pair>> wider(std::bit_ceil(room_));
    const std::uint64_t count = size();
    for (std::uint64_t i = 0; i < count; ++i) wider[i] = at(head_ + i);
    ring_ = std::move(wider);
    head_ = 0;
    tail_ = count;
  }
  void give_room_back(std::uint32_t requests) { room_ -= requests; }
  /// Removes the completions of a queue pair that is being destroyed, and the room that was made for it.
  void forget(const Pair& qp, std::uint32_t requests) {
    give_room_back(requests);
    std::uint64_t kept = head_;
    for (std::uint64_t i = head_; i != tail_; ++i) {
      if (at(i).qp != &qp) at(kept++) = at(i);
    }
    tail_ = kept;
  }
  void push(const Completion<Pair>& completion) { at(tail_++) = completion; }
  /// Moves as many completions as fit to `out` and notifies the queue pairs of these completions.
  std::size_t take(std::span<Wc> out) {
    const std::size_t count = std::min<std::size_t>(out.size(), size());
    for (std::size_t i = 0; i < count; ++i) {
      const Completion<Pair>& completion = at(head_++);
      out[i] = completion.wc;
      completion.qp->polled(completion.receive, completion.send_end, completion.wc.receives);
    }
    return count;
  }

 private:
  Completion<Pair>& at(std::uint64_t index) { return ring_[index & (ring_.size() - 1)]; }

  std::vector<Completion<Pair>> ring_;
  std::uint64_t room_ = 0, head_ = 0, tail_ = 0;
};

}  // namespace rdma_rpc::fabric

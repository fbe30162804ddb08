// The completions of a queue in this process's own memory, which their queue pairs write and poll() takes
// out. Grows to what they can have outstanding (make_room), so it never overflows; before that it takes no
// memory worth mentioning. Used by the completion queues of tcp and of the simulation, on their device's
// thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// A completion and what polling it gives back to its queue pair.
template <typename Pair>
struct Completion {
  Wc wc;
  Pair* qp;
  bool receive;
  std::uint64_t send_end;  ///< sends with an index below this one are complete
};

template <typename Pair>
class CompletionRing {
 public:
  std::uint64_t size() const { return tail_ - head_; }
  /// For all that a further queue pair can have outstanding.
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
  /// Of a queue pair that is gone, with its completions.
  void forget(const Pair& qp, std::uint32_t requests) {
    give_room_back(requests);
    std::uint64_t kept = head_;
    for (std::uint64_t i = head_; i != tail_; ++i) {
      if (at(i).qp != &qp) at(kept++) = at(i);
    }
    tail_ = kept;
  }
  void push(const Completion<Pair>& completion) { at(tail_++) = completion; }
  /// As many as there are and `out` holds; their queue pairs hear that they were polled.
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

// Answers the READs and atomics of the peer, in order. An atomic is executed when its turn comes, so that its
// effect lies between the READs before and after it. A QueuePair owns this object and uses it on the device's
// thread.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class PeerReads {
 public:
  struct Answer {
    std::uint64_t addr;
    std::uint32_t key, left, moved, number;
    Op op = Op::read;
    Opcode atomic = Opcode::atomic_cmp_and_swp;  ///< for an atomic, with its operands
    AtomicOperands operands = {};
  };

  bool is_empty() const { return head_ == tail_; }
  bool is_full() const { return tail_ - head_ == kReadsMax; }
  void add(const Answer& answer) { answers_[tail_++ % kReadsMax] = answer; }
  Answer& oldest() { return answers_[head_ % kReadsMax]; }
  void oldest_is_done() { ++head_; }
  void clear() { head_ = tail_; }

 private:
  std::array<Answer, kReadsMax> answers_{};
  std::uint32_t head_ = 0, tail_ = 0;
};

}  // namespace rdma_rpc::fabric::tcp

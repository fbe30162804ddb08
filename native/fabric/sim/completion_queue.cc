// See completion_queue.h. On the world's thread.
#include "fabric/sim/completion_queue.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "fabric/sim/device.h"
#include "fabric/sim/queue_pair.h"

namespace rdma_rpc::fabric {

SimCompletionQueue::SimCompletionQueue(SimDevice& device, std::uint32_t entries, int event_fd)
    : device_(device), entries_(entries), event_fd_(event_fd), ring_(std::bit_ceil(std::max(entries, 1u))) {
  ++device_.live.open_fds;
}

SimCompletionQueue::~SimCompletionQueue() {
  close(event_fd_);
  --device_.live.open_fds;
}

void SimCompletionQueue::conclude_connections() {
  for (SimQueuePair*& qp : connecting_) {
    if (!qp->can_conclude()) continue;
    std::exchange(qp, nullptr)->conclude();
  }
  std::erase(connecting_, nullptr);
  device_.world().settle();
}

std::size_t SimCompletionQueue::poll(std::span<Wc> out) {
  if (!connecting_.empty()) conclude_connections();
  const std::size_t count = std::min<std::size_t>(out.size(), tail_ - head_);
  for (std::size_t i = 0; i < count; ++i) {
    const Cqe& cqe = ring_[head_++ & (ring_.size() - 1)];
    out[i] = cqe.wc;
    if (cqe.receive) {
      cqe.qp->receive_polled();
    } else {
      cqe.qp->sends_polled(cqe.send_end);
    }
  }
  return count;
}

bool SimCompletionQueue::arm() {
  if (tail_ != head_) return false;
  for (const SimQueuePair* qp : connecting_) {
    if (qp->can_conclude()) return false;
  }
  armed_ = true;
  return true;
}

void SimCompletionQueue::acknowledge() {
  armed_ = false;
  if (!readable_) return;
  std::uint64_t value = 0;
  // Cannot fail: the counter is not zero and only this object reads it.
  [[maybe_unused]] const ssize_t got = read(event_fd_, &value, sizeof value);
  readable_ = false;
}

void SimCompletionQueue::make_room(std::uint32_t requests) {
  room_ += requests;
  if (room_ <= ring_.size()) return;
  std::vector<Cqe> wider(std::bit_ceil(room_));
  const std::uint64_t count = tail_ - head_;
  for (std::uint64_t i = 0; i < count; ++i) wider[i] = ring_[(head_ + i) & (ring_.size() - 1)];
  ring_ = std::move(wider);
  head_ = 0;
  tail_ = count;
}

void SimCompletionQueue::push(const Cqe& cqe) {
  ring_[tail_++ & (ring_.size() - 1)] = cqe;
  if (tail_ - head_ > entries_) ++device_.world().counters.cq_overruns;
  announce();
}

void SimCompletionQueue::announce() {
  if (!armed_ || readable_) return;
  const std::uint64_t one = 1;
  readable_ = write(event_fd_, &one, sizeof one) == sizeof one;
}

void SimCompletionQueue::forget(const SimQueuePair& qp) {
  std::erase(connecting_, &qp);
  const std::uint64_t mask = ring_.size() - 1;
  std::uint64_t kept = head_;
  for (std::uint64_t i = head_; i != tail_; ++i) {
    if (ring_[i & mask].qp != &qp) ring_[kept++ & mask] = ring_[i & mask];
  }
  tail_ = kept;
}

}  // namespace rdma_rpc::fabric

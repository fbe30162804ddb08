// See completion_queue.h. This code runs on the world's thread.
#include "fabric/sim/completion_queue.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "fabric/sim/device.h"
#include "fabric/sim/queue_pair.h"

namespace rdma_rpc::fabric {

SimCompletionQueue::SimCompletionQueue(SimDevice& device, std::uint32_t entries, int event_fd)
    : device_(device), entries_(entries), event_fd_(event_fd) {
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
  const std::size_t count = ring_.take(out);
  taken_.took(count);
  if (count < out.size()) taken_.found_empty(entries_);
  apart_.clear();
  for (Wc& wc : out.first(count)) {
    if (wc.apart != nullptr) take_apart(wc);
  }
  return count;
}

/// The buffer of the receive is overwritten with other bytes, because on shm it never contains the message.
void SimCompletionQueue::take_apart(Wc& wc) {
  auto* const buffer = const_cast<std::byte*>(wc.apart);
  apart_.emplace_back(buffer, buffer + wc.bytes);
  std::fill_n(buffer, wc.bytes, std::byte{0xa5});
  wc.apart = apart_.back().data();
}

bool SimCompletionQueue::arm() {
  if (ring_.size() != 0) return false;
  for (const SimQueuePair* qp : connecting_) {
    if (qp->can_conclude()) return false;
  }
  armed_ = Armed::for_all;
  return true;
}

bool SimCompletionQueue::arm_solicited() {
  if (!arm()) return false;
  armed_ = Armed::for_solicited;
  return true;
}

void SimCompletionQueue::acknowledge() {
  armed_ = Armed::no;
  if (!readable_) return;
  std::uint64_t value = 0;
  // The read cannot fail, because the counter is not zero and only this object reads it.
  [[maybe_unused]] const ssize_t got = read(event_fd_, &value, sizeof value);
  readable_ = false;
}

void SimCompletionQueue::push(const Cqe& cqe) {
  ring_.push(cqe);
  if (ring_.size() > entries_) ++device_.world().counters.cq_overruns;
  if (cqe.solicited || armed_ == Armed::for_all) announce();
}

void SimCompletionQueue::announce() {
  if (armed_ == Armed::no || readable_) return;
  const std::uint64_t one = 1;
  readable_ = write(event_fd_, &one, sizeof one) == sizeof one;
}

void SimCompletionQueue::forget(const SimQueuePair& qp, std::uint32_t requests) {
  std::erase(connecting_, &qp);
  ring_.forget(qp, requests);
}

}  // namespace rdma_rpc::fabric

// Creates the queue pairs of a device, finds them, and names them to peers. See device.h.
#include <algorithm>
#include <array>
#include <bit>

#include "fabric/shm/device.h"
#include "fabric/shm/queue/announcements.h"
#include "fabric/shm/queue/completion_queue.h"
#include "fabric/shm/queue/queue_pair.h"

namespace rdma_rpc::fabric::shm {

std::unique_ptr<fabric::QueuePair> Device::create_qp(fabric::CompletionQueue& cq, const QpOptions& options,
                                                     std::string* error) {
  std::string reason = why_no_queues(options, capabilities_);
  if (!reason.empty()) reason = "shm: " + reason;
  if (reason.empty() && free_indices_.empty() && by_index_.size() == kQueuePairsMax) {
    reason = "shm: all " + std::to_string(kQueuePairsMax) + " queue pairs of the device are in use";
  }
  Token token{};
  if (reason.empty() && !make_token(&token)) reason = "shm: no random bytes (getrandom)";
  auto& queue = static_cast<CompletionQueue&>(cq);
  if (reason.empty() && options_.by_descriptors && !options.active) reason = queue.open_acceptor(&token);
  Segment segment;
  if (reason.empty()) {
    const std::size_t bytes = qp_segment_bytes(std::bit_ceil(options.recv_wr_max));
    segment = create_segment("rdma-rpc:queue-pair", bytes, PeerMay::write, &reason);
  }
  if (!segment.map) {
    if (error != nullptr) *error = reason;
    return nullptr;
  }
  close_opened_files();
  const auto next = static_cast<std::uint32_t>(by_index_.size());
  const std::uint32_t index = free_indices_.take().value_or(next);
  if (index == next) by_index_.push_back(nullptr);
  auto qp =
      std::make_unique<QueuePair>(*this, queue, options, ++last_qp_num_, index, std::move(segment), token);
  by_index_[index] = qp.get();
  queue_pairs_.push_back(qp.get());
  return qp;
}

QueuePair* Device::find(const Token& token) const {
  const auto found = std::find_if(queue_pairs_.begin(), queue_pairs_.end(),
                                  [&](const QueuePair* qp) { return qp->token() == token; });
  return found == queue_pairs_.end() ? nullptr : *found;
}

void Device::forget(const QueuePair& qp) {
  std::erase(queue_pairs_, &qp);
  std::erase(with_file_, &qp);
  by_index_[qp.index()] = nullptr;
  free_indices_.give(qp.index());
}

/// Closes the descriptors of segments that their peers have opened. Each new queue pair checks a few of the
/// oldest descriptors, so that few stay open, independent of the number of queue pairs.
void Device::close_opened_files() {
  constexpr int kLooks = 8;
  for (int i = 0; i < kLooks && !with_file_.empty(); ++i) {
    QueuePair* qp = with_file_.front();
    with_file_.pop_front();
    if (!qp->close_opened_file()) with_file_.push_back(qp);
  }
}

void Device::collect_announced(std::memory_order order) {
  if (announcements() == nullptr) return;
  // Prefetches the queue pairs of a batch before they are polled, see prefetch.h.
  std::array<QueuePair*, 16> found;
  std::size_t count = 0;
  const auto list = [&] {
    for (std::size_t i = 0; i < count; ++i) found[i]->expect_poll();
    for (std::size_t i = 0; i < count; ++i) found[i]->cq().list(*found[i]);
    count = 0;
  };
  collect(*announcements(), by_index_.size(), order, [&](std::uint32_t index) {
    // (The index may be unused, because any peer can set any bit.)
    QueuePair* qp = index < by_index_.size() ? by_index_[index] : nullptr;
    if (qp == nullptr) return;
    qp->expect_look();
    found[count++] = qp;
    if (count == found.size()) list();
  });
  list();
}

}  // namespace rdma_rpc::fabric::shm

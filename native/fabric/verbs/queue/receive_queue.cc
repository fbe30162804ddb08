// See receive_queue.h.
#include "fabric/verbs/queue/receive_queue.h"

#include <algorithm>

#include "fabric/verbs/queue/completion_queue.h"

namespace rdma_rpc::fabric::verbs {

ReceiveQueue::ReceiveQueue(Device& device, CompletionQueue& cq, SrqPtr srq, std::uint32_t capacity,
                           std::uint32_t generation)
    : fabric::ReceiveQueue(capacity),
      device_(device),
      cq_(cq),
      srq_(std::move(srq)),
      base_(std::uint64_t{1} << 63 | (std::uint64_t{generation & 0x7fff} << 16 | kNoPlace) << 32),
      wr_ids_(capacity) {
  free_.reserve(capacity);
  for (std::uint32_t number = capacity; number-- > 0;) free_.push_back(number);
  cq_.share_receives(this);
  ++device_.counts().receive_queues;
}

ReceiveQueue::~ReceiveQueue() {
  cq_.share_receives(nullptr);
  --device_.counts().receive_queues;
}

std::size_t ReceiveQueue::post(std::span<const RecvWr> requests) {
  const std::size_t room = std::min(requests.size(), free_.size());
  std::size_t taken = 0;
  while (taken < room) {
    const std::size_t count = std::min(room - taken, kChain);
    for (std::size_t i = 0; i < count; ++i) {
      const RecvWr& wr = requests[taken + i];
      const std::uint32_t number = free_.back();
      free_.pop_back();
      wr_ids_[number] = wr.wr_id;
      sges_[i] = {wr.sge.addr, wr.sge.length, wr.sge.lkey};
      chain_[i] = {base_ | number, i + 1 < count ? &chain_[i + 1] : nullptr, &sges_[i], 1};
    }
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_srq_recv(srq_.get(), chain_.data(), &bad) != 0 && bad != nullptr) {
      taken += static_cast<std::size_t>(bad - chain_.data());
      for (; bad != nullptr; bad = bad->next) free_.push_back(static_cast<std::uint32_t>(bad->wr_id));
      return taken;
    }
    taken += count;
  }
  return taken;
}

}  // namespace rdma_rpc::fabric::verbs

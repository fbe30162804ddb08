// See receive_queue.h.
#include "fabric/verbs/queue/receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/verbs/queue/completion_queue.h"

namespace rdma_rpc::fabric::verbs {

ReceiveQueue::ReceiveQueue(Device& device, CompletionQueue& cq, SrqPtr srq, std::uint32_t capacity,
                           std::uint32_t generation)
    : fabric::ReceiveQueue(capacity),
      device_(device),
      cq_(cq),
      srq_(std::move(srq)),
      base_(std::uint64_t{1} << 63 | (std::uint64_t{generation & 0x7fff} << 16 | kNoSlot) << 32),
      wr_ids_(capacity) {
  free_.reserve(capacity);
  for (std::uint32_t number = capacity; number-- > 0;) free_.give(number);
  cq_.share_receives(this);
  device_.enter(*this);
  ++device_.counts().receive_queues;
}

ReceiveQueue::~ReceiveQueue() {
  cq_.share_receives(nullptr);
  device_.leave(*this);
  --device_.counts().receive_queues;
}

std::string ReceiveQueue::arm_limit(std::uint32_t receives) {
  // Devices round the length of a queue up, and take a limit that the user's receives never reach.
  if (receives > capacity())
    return device_.capabilities().name + " takes no limit of " + std::to_string(receives) +
           " shared receives: the queue has " + std::to_string(capacity());
  ibv_srq_attr attr{};
  attr.srq_limit = receives;
  const int error = ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_LIMIT);
  return error == 0 ? ""
                    : device_.capabilities().name + " takes no limit of " + std::to_string(receives) +
                          " shared receives: " + std::strerror(error);
}

std::size_t ReceiveQueue::post(std::span<const RecvWr> requests) {
  const std::size_t room = std::min(requests.size(), free_.size());
  std::size_t taken = 0;
  while (taken < room) {
    std::size_t count = 0;
    for (const std::size_t most = std::min(room - taken, kChain); count < most; ++count) {
      const std::optional<std::uint32_t> number = free_.take();
      if (!number) break;
      const RecvWr& wr = requests[taken + count];
      wr_ids_[*number] = wr.wr_id;
      sges_[count] = {wr.sge.addr, wr.sge.length, wr.sge.lkey};
      chain_[count] = {base_ | *number, nullptr, &sges_[count], 1};
      if (count > 0) chain_[count - 1].next = &chain_[count];
    }
    if (count == 0) return taken;
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_srq_recv(srq_.get(), chain_.data(), &bad) != 0 && bad != nullptr) {
      taken += static_cast<std::size_t>(bad - chain_.data());
      for (; bad != nullptr; bad = bad->next) free_.give(static_cast<std::uint32_t>(bad->wr_id));
      return taken;
    }
    taken += count;
  }
  return taken;
}

}  // namespace rdma_rpc::fabric::verbs

// Implements a shared receive queue of a device (ibv_srq). The receive queue is made for one completion
// queue, on which its completions arrive. That queue recognises the completions by their ids. This code runs
// on the device's thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fabric/free_list.h"
#include "fabric/receive_queue.h"
#include "fabric/verbs/device.h"

namespace rdma_rpc::fabric::verbs {

class CompletionQueue;

class ReceiveQueue final : public fabric::ReceiveQueue {
 public:
  ReceiveQueue(Device& device, CompletionQueue& cq, SrqPtr srq, std::uint32_t capacity,
               std::uint32_t generation);
  ~ReceiveQueue() override;

  std::size_t post(std::span<const RecvWr> requests) override;
  std::string arm_limit(std::uint32_t receives) override;

  const SrqPtr& srq() const { return srq_; }
  /// The id of a work request is formed as for queue pairs, with a slot that no queue pair has.
  static bool is_shared(std::uint64_t id) { return (id >> 32 & kNoSlot) == kNoSlot && id >> 63 != 0; }
  /// Returns whether the id belongs to this receive queue and not to an earlier one.
  bool is_own(std::uint64_t id) const { return id >> 32 == base_ >> 32; }
  /// Must be called when the receive has completed; frees its number. Returns the user's wr_id.
  std::uint64_t complete(std::uint64_t id) {
    const auto number = static_cast<std::uint32_t>(id);
    free_.give(number);
    return wr_ids_[number];
  }

 private:
  static constexpr std::uint64_t kNoSlot = 0xffff;
  static constexpr std::size_t kChain = 32;  ///< receives per doorbell

  Device& device_;
  CompletionQueue& cq_;
  SrqPtr srq_;
  const std::uint64_t base_;           ///< the constant part of its ids
  std::vector<std::uint64_t> wr_ids_;  ///< the user's wr_ids, by number
  FreeList<> free_;                    ///< numbers that are not posted
  std::array<ibv_recv_wr, kChain> chain_{};
  std::array<ibv_sge, kChain> sges_{};
};

}  // namespace rdma_rpc::fabric::verbs

// Announcements tell a device which of its queue pairs have new messages. A segment of the device has one bit
// for each queue pair; the peer sets it, and the owner clears it. Announcements serve the queue pairs that
// their completion queue does not watch, so that the cost of a poll depends on the number of messages that
// have arrived instead of the number of queue pairs. This file is used by queue pairs (to announce) and
// completion queues (to collect), on the device's thread.
//
// All peers write to the same segment, so a peer can delay a message by clearing the bit of another queue
// pair. This gives a peer no new power, because on shm all peers are processes of one user (SECURITY.md). On
// shm-fd, where they may belong to different users, announcements are not used.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "fabric/shm/layout.h"

namespace rdma_rpc::fabric::shm {

/// Announces a message. Must be called after the message has been published.
inline void announce(Announcements& to, std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % kBitsPerWord);
  const std::uint32_t word = index / kBitsPerWord;
  // Both words are written each time. A bit that is already set may come from a peer that died before it
  // could set its bit in `groups`. The index may belong to another queue pair now.
  to.queue_pairs[word].fetch_or(bit, std::memory_order_seq_cst);
  to.groups[word / kBitsPerWord].fetch_or(std::uint64_t{1} << (word % kBitsPerWord),
                                          std::memory_order_seq_cst);
}

/// Calls `f(index)` for each bit that is set, after clearing the bit, so that a message published later is
/// announced again. `indices` is an upper limit of the indices in use. `order` applies to the check whether
/// any bit is set. Before a sleep, the order must be seq_cst.
template <class F>
void collect(Announcements& from, std::size_t indices, std::memory_order order, F&& f) {
  const std::size_t groups = (indices + kBitsPerWord * kBitsPerWord - 1) / (kBitsPerWord * kBitsPerWord);
  for (std::uint32_t group = 0; group < groups; ++group) {
    if (from.groups[group].load(order) == 0) continue;
    std::uint64_t words = from.groups[group].exchange(0, std::memory_order_seq_cst);
    for (; words != 0; words &= words - 1) {
      const std::uint32_t word = group * kBitsPerWord + static_cast<std::uint32_t>(std::countr_zero(words));
      std::uint64_t bits = from.queue_pairs[word].exchange(0, std::memory_order_seq_cst);
      for (; bits != 0; bits &= bits - 1) {
        f(word * kBitsPerWord + static_cast<std::uint32_t>(std::countr_zero(bits)));
      }
    }
  }
}

}  // namespace rdma_rpc::fabric::shm

// Which queue pairs of a device their peers have written to: a bit each in a segment of the device, set by
// the peers and taken by the owner. For those that their completion queue does not look at by itself, so that
// what a poll costs depends on what has come and not on how many queue pairs there are. Used by queue pairs
// (to announce) and completion queues (to collect), on the device's thread.
//
// All peers write to the one segment: whoever clears another one's bit keeps its message waiting. They are
// processes of one user (SECURITY.md); where they are not (by descriptors) there are no such bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "fabric/shm/layout.h"

namespace rdma_rpc::fabric::shm {

/// After the message has been published.
inline void announce(Announcements& to, std::uint32_t place) {
  const std::uint64_t bit = std::uint64_t{1} << (place % kPlacesPerWord);
  const std::uint32_t word = place / kPlacesPerWord;
  // Both each time: a bit that is there already may be of a peer that has died before it could say so in
  // `groups`, and the place is another's now.
  to.places[word].fetch_or(bit, std::memory_order_seq_cst);
  to.groups[word / kPlacesPerWord].fetch_or(std::uint64_t{1} << (word % kPlacesPerWord),
                                            std::memory_order_seq_cst);
}

/// Calls `f(place)` for each bit that has been set, and clears it first: what is published after that is
/// announced again. `places`: no queue pair has one beyond them. `order`: of the look whether there is any;
/// seq_cst before sleeping.
template <class F>
void collect(Announcements& from, std::size_t places, std::memory_order order, F&& f) {
  const std::size_t groups =
      (places + kPlacesPerWord * kPlacesPerWord - 1) / (kPlacesPerWord * kPlacesPerWord);
  for (std::uint32_t group = 0; group < groups; ++group) {
    if (from.groups[group].load(order) == 0) continue;
    std::uint64_t words = from.groups[group].exchange(0, std::memory_order_seq_cst);
    for (; words != 0; words &= words - 1) {
      const std::uint32_t word = group * kPlacesPerWord + static_cast<std::uint32_t>(std::countr_zero(words));
      std::uint64_t bits = from.places[word].exchange(0, std::memory_order_seq_cst);
      for (; bits != 0; bits &= bits - 1) {
        f(word * kPlacesPerWord + static_cast<std::uint32_t>(std::countr_zero(bits)));
      }
    }
  }
}

}  // namespace rdma_rpc::fabric::shm

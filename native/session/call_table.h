// Keeps the calls of one session by call slot. The table is allocated in chunks. Each chunk is allocated when
// one of its slots is first used. The memory therefore grows with the largest number of calls at one time. An
// endpoint owns this object and uses it on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/prefetch.h"

namespace rdma_rpc::session {

template <class Call>
class CallTable {
 public:
  /// All slots begin with this `generation`.
  explicit CallTable(std::uint32_t slots, std::uint32_t generation = 0)
      : gather_entries_((slots + kGatherEntrySlots - 1) / kGatherEntrySlots), generation_(generation) {}

  Call& operator[](std::uint32_t slot) {
    const std::unique_ptr<GatherEntry>& gather_entry = gather_entries_[slot / kGatherEntrySlots];
    return (gather_entry != nullptr ? *gather_entry : make(slot)).calls[slot % kGatherEntrySlots];
  }
  /// Prefetches a slot that will be used; the number may be invalid. See Endpoint::expect_call().
  void expect(int step, std::uint32_t slot) const {
    if (step == 2) return fabric::prefetch(gather_entries_.data() + slot / kGatherEntrySlots);
    if (slot / kGatherEntrySlots >= gather_entries_.size()) return;
    if (const GatherEntry* gather_entry = gather_entries_[slot / kGatherEntrySlots].get()) {
      fabric::prefetch(&gather_entry->calls[slot % kGatherEntrySlots], sizeof(Call));
    }
  }
  /// Returns the call of a slot that has been used.
  const Call& operator[](std::uint32_t slot) const {
    return gather_entries_[slot / kGatherEntrySlots]->calls[slot % kGatherEntrySlots];
  }
  /// Calls `f(slot, call)` for each slot in an allocated chunk.
  template <class F>
  void for_each(F&& f) {
    for (std::size_t i = 0; i < gather_entries_.size(); ++i) {
      if (gather_entries_[i] == nullptr) continue;
      for (std::uint32_t j = 0; j < kGatherEntrySlots; ++j) {
        f(static_cast<std::uint32_t>(i) * kGatherEntrySlots + j, gather_entries_[i]->calls[j]);
      }
    }
  }

 private:
  static constexpr std::uint32_t kGatherEntrySlots = 16;
  struct GatherEntry {
    Call calls[kGatherEntrySlots];
  };
  GatherEntry& make(std::uint32_t slot) {
    std::unique_ptr<GatherEntry>& gather_entry = gather_entries_[slot / kGatherEntrySlots];
    gather_entry = std::make_unique<GatherEntry>();
    for (Call& call : gather_entry->calls) call.generation = generation_;
    return *gather_entry;
  }

  std::vector<std::unique_ptr<GatherEntry>> gather_entries_;
  const std::uint32_t generation_;
};

}  // namespace rdma_rpc::session

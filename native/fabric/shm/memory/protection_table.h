// Implements the translation and protection table, which says what each key of this device allows. The table
// has two halves. The private half answers local questions (whether an lkey is valid for a range). Entries
// with remote rights are copied to the other half, which peers read. The private half is authoritative:
// nothing is ever read back from shared memory. This code runs on the device's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/free_list.h"
#include "fabric/shm/layout.h"

namespace rdma_rpc::fabric::shm {

struct KeyEntry {
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint32_t access = 0;
  std::uint32_t qp_num = 0;  ///< 0 for any queue pair
  std::uint32_t memory = kNoMemory;
  std::uint32_t region = 0;  ///< for a window: the key of its region

  /// Returns whether the entry covers these bytes. The comparison is written so that no sum can overflow.
  bool covers(std::uint64_t from, std::uint64_t bytes) const {
    return from >= addr && bytes <= length && from - addr <= length - bytes;
  }
  bool overlaps(std::uint64_t from, std::uint64_t bytes) const {
    return from < addr + length && addr < from + bytes;
  }
};

class ProtectionTable {
 public:
  enum class Kind : std::uint8_t { free, region, window };

  /// `generation` is the first generation of the keys. A random start makes the keys of an earlier process
  /// invalid here.
  ProtectionTable(TableKey* shared, std::uint32_t generation);

  /// Returns a free index of the table, or 0 when all kKeysMax indices are in use.
  std::uint32_t add(Kind kind);
  void remove(std::uint32_t index);

  /// Returns a key for this entry that has not been used recently and does not grant anything yet. The key is
  /// never 0.
  std::uint32_t new_key(std::uint32_t index);
  /// Gives the entry a new key. If `key_entry.access` has remote rights, peers see the entry.
  std::uint32_t grant(std::uint32_t index, const KeyEntry& key_entry);
  /// Makes the key invalid at once. A peer that is copying through the key shows this by its in-use marker
  /// (QpSegment::in_use).
  void revoke(std::uint32_t key);
  /// Makes peers reach this region's memory by its address from now on.
  void unshare(std::uint32_t key);

  /// Returns the rights of this key, or null when the key is stale or never existed.
  const KeyEntry* find(std::uint32_t key, Kind kind) const {
    const std::uint32_t index = index_of(key);
    if (key == 0 || index >= entries_.size()) return nullptr;
    const Entry& entry = entries_[index];
    return entry.key == key && entry.kind == kind ? &entry.key_entry : nullptr;
  }
  static std::uint32_t index_of(std::uint32_t key) { return key >> kKeyGenerationBits; }

  /// Calls visit(key, key_entry) for each entry with a key.
  template <typename Visit>
  void for_each(Kind kind, Visit visit) const {
    for (std::uint32_t index = 1; index < entries_.size(); ++index) {
      if (entries_[index].kind == kind && entries_[index].key != 0)
        visit(entries_[index].key, entries_[index].key_entry);
    }
  }

 private:
  struct Entry {
    std::uint32_t key = 0;
    Kind kind = Kind::free;
    KeyEntry key_entry;
  };
  TableKey* shared_;
  std::uint32_t generation_;
  std::vector<Entry> entries_;
  FreeList<> free_;
};

}  // namespace rdma_rpc::fabric::shm

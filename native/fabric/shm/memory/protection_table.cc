// Creates, grants and revokes keys; see protection_table.h.
#include "fabric/shm/memory/protection_table.h"

namespace rdma_rpc::fabric::shm {
namespace {

constexpr std::uint32_t kGenerationMask = (1u << kKeyGenerationBits) - 1;

}  // namespace

ProtectionTable::ProtectionTable(TableKey* shared, std::uint32_t generation)
    : shared_(shared), generation_(generation & kGenerationMask), entries_(1) {}

std::uint32_t ProtectionTable::add(Kind kind) {
  std::uint32_t index = 0;
  if (const std::optional<std::uint32_t> free = free_.take()) {
    index = *free;
  } else if (entries_.size() < kKeysMax) {
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    return 0;
  }
  entries_[index].kind = kind;
  return index;
}

void ProtectionTable::remove(std::uint32_t index) {
  revoke(index << kKeyGenerationBits);
  entries_[index].kind = Kind::free;
  free_.give(index);
}

std::uint32_t ProtectionTable::new_key(std::uint32_t index) {
  // All entries share one generation counter. An index that is freed and reused therefore continues with new
  // generations.
  generation_ = (generation_ + 1) & kGenerationMask;
  return (index << kKeyGenerationBits) | generation_;
}

std::uint32_t ProtectionTable::grant(std::uint32_t index, const KeyEntry& key_entry) {
  Entry& entry = entries_[index];
  entry.key = new_key(index);
  entry.key_entry = key_entry;
  if ((key_entry.access & kRemoteAccess) != 0) {
    TableKey& shared = shared_[index];
    // Orders the new fields after the 0 that a revocation stored in `key`: a peer that sees one of the new
    // values no longer finds the old key.
    shared_fence(std::memory_order_release);
    shared.qp_num.store(key_entry.qp_num, std::memory_order_relaxed);
    shared.access.store(key_entry.access, std::memory_order_relaxed);
    shared.memory.store(key_entry.memory, std::memory_order_relaxed);
    shared.addr.store(key_entry.addr, std::memory_order_relaxed);
    shared.length.store(key_entry.length, std::memory_order_relaxed);
    shared.key.store(entry.key, std::memory_order_release);
  }
  return entry.key;
}

void ProtectionTable::revoke(std::uint32_t key) {
  const std::uint32_t index = index_of(key);
  entries_[index].key = 0;
  shared_[index].key.store(0, std::memory_order_seq_cst);
}

void ProtectionTable::unshare(std::uint32_t key) {
  shared_[index_of(key)].memory.store(kNoMemory, std::memory_order_seq_cst);
}

}  // namespace rdma_rpc::fabric::shm

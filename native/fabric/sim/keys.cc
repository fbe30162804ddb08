// Keys and what they allow, see keys.h. On the world's thread.
#include "fabric/sim/keys.h"

namespace rdma_rpc::fabric {

KeyTable::KeyTable() : entries_(1) { entries_.reserve(4 * kQuarantine); }

std::uint32_t KeyTable::add(const KeyEntry& entry) {
  std::uint32_t index = 0;
  if (free_count_ > kQuarantine || (entries_.size() > kMaxIndex && free_count_ > 0)) {
    index = first_free_;
    first_free_ = entries_[index].next_free;
    --free_count_;
  } else {
    if (entries_.size() > kMaxIndex) return 0;
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  }
  KeyEntry& slot = entries_[index];
  const std::uint32_t variant = (slot.key + 1) & 0xff;
  slot = entry;
  slot.key = index << 8 | variant;
  return slot.key;
}

void KeyTable::remove(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  KeyEntry& slot = entries_[index];
  slot = {};
  slot.key = key;
  if (free_count_ == 0) {
    first_free_ = index;
  } else {
    entries_[last_free_].next_free = index;
  }
  last_free_ = index;
  ++free_count_;
}

KeyEntry* KeyTable::find(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  if (index == 0 || index >= entries_.size()) return nullptr;
  KeyEntry& slot = entries_[index];
  return slot.kind != KeyEntry::Kind::free && slot.key == key ? &slot : nullptr;
}

void KeyTable::remove_all_of(const SimMemoryWindow* window) {
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].kind != KeyEntry::Kind::free && entries_[i].window == window) remove(entries_[i].key);
  }
}

bool KeyTable::local_ok(const Sge& sge, std::uint32_t device_id, std::uint32_t access) {
  if (sge.length == 0) return true;
  const KeyEntry* entry = find(sge.lkey);
  return entry != nullptr && entry->kind == KeyEntry::Kind::region && entry->device_id == device_id &&
         (entry->access & access) == access && entry->contains(sge.addr, sge.length);
}

bool KeyTable::remote_ok(std::uint32_t key, std::uint32_t device_id, std::uint32_t qp_num, std::uint64_t addr,
                         std::uint64_t bytes, std::uint32_t access) {
  const KeyEntry* entry = find(key);
  if (entry == nullptr || entry->device_id != device_id) return false;
  if (entry->kind == KeyEntry::Kind::window &&
      (entry->qp_num != qp_num || find(entry->region_key) == nullptr)) {
    return false;
  }
  return (entry->access & access) == access && entry->contains(addr, bytes);
}

bool KeyTable::withdraw(std::uint32_t key, std::uint32_t device_id, std::uint32_t qp_num) {
  KeyEntry* entry = find(key);
  if (entry == nullptr || entry->window == nullptr || entry->device_id != device_id) return false;
  if (entry->kind == KeyEntry::Kind::window && entry->qp_num != qp_num) return false;
  entry->withdrawn = true;
  return true;
}

bool KeyTable::present(std::uint32_t key) {
  const KeyEntry* entry = find(key);
  if (entry != nullptr && entry->withdrawn) return false;
  if (entry != nullptr && entry->kind == KeyEntry::Kind::window) entry = find(entry->region_key);
  return entry == nullptr || entry->region == nullptr || entry->region->present();
}

KeyEntry* KeyTable::bound_window(std::uint32_t key, std::uint32_t device_id, std::uint32_t qp_num) {
  KeyEntry* entry = find(key);
  const bool usable = entry != nullptr && entry->kind == KeyEntry::Kind::window &&
                      entry->device_id == device_id && entry->qp_num == qp_num;
  return usable ? entry : nullptr;
}

}  // namespace rdma_rpc::fabric

// See key_table.h.
#include "fabric/software/key_table.h"

#include "fabric/software/memory.h"
#include "fabric/software/requests.h"

namespace rdma_rpc::fabric::software {

std::uint32_t KeyTable::add(const KeyEntry& entry) {
  std::uint32_t index = 0;
  if (free_count_ > kQuarantine || (entries_.size() > kMaxIndex && free_count_ > 0)) {
    index = first_free_;
    first_free_ = entries_[index].next_free;
    --free_count_;
  } else {
    if (entries_.size() > kMaxIndex) return 0;
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back().key = seed_ & 0xff;
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

void KeyTable::remove_all_of(const Window* window) {
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].kind != KeyEntry::Kind::free && entries_[i].window == window) remove(entries_[i].key);
  }
}

bool KeyTable::local_ok(const Sge& sge, std::uint32_t access) {
  if (sge.length == 0) return true;
  const KeyEntry* entry = find(sge.lkey);
  return entry != nullptr && entry->kind == KeyEntry::Kind::region && (entry->access & access) == access &&
         entry->contains(sge.addr, sge.length);
}

bool KeyTable::remote_ok(std::uint32_t key, std::uint32_t qp_num, std::uint64_t addr, std::uint64_t bytes,
                         std::uint32_t access) {
  const KeyEntry* entry = find(key);
  if (entry == nullptr) return false;
  if (entry->kind == KeyEntry::Kind::window) {
    if (entry->qp_num != qp_num) return false;
    if (!entry->revoked && find(entry->region_key) == nullptr) return false;
  }
  return (entry->access & access) == access && entry->contains(addr, bytes);
}

bool KeyTable::revoke(std::uint32_t key, std::uint32_t qp_num) {
  KeyEntry* entry = find(key);
  if (entry == nullptr || entry->window == nullptr) return false;
  if (entry->kind == KeyEntry::Kind::window && entry->qp_num != qp_num) return false;
  entry->revoked = true;
  return true;
}

bool KeyTable::is_revoked(std::uint32_t key) {
  const KeyEntry* entry = find(key);
  return entry != nullptr && entry->revoked;
}

bool KeyTable::present(std::uint32_t key) {
  const KeyEntry* entry = find(key);
  if (entry != nullptr && entry->revoked) return false;
  if (entry != nullptr && entry->kind == KeyEntry::Kind::window) entry = find(entry->region_key);
  return entry == nullptr || entry->region == nullptr || entry->region->present();
}

WcStatus KeyTable::bind(const BindRequest& request, std::uint32_t qp_num) {
  KeyEntry* entry = find(request.key);  // null when the window has been freed meanwhile
  const KeyEntry* region = entry == nullptr ? nullptr : find(request.region_key);
  const bool covered = region != nullptr && region->kind == KeyEntry::Kind::region &&
                       may_bind(request.access, request.length, region->access) &&
                       region->contains(request.addr, request.length);
  // A window that was revoked before this bind grants nothing, so its region may already be deregistered.
  const bool allowed = entry != nullptr && entry->window->bound_key == 0 && (covered || entry->revoked);
  if (!allowed) {
    if (entry != nullptr) remove(request.key);
    return WcStatus::mw_bind_err;
  }
  entry->kind = KeyEntry::Kind::window;
  entry->access = request.access;
  entry->addr = request.addr;
  entry->length = request.length;
  entry->qp_num = qp_num;
  entry->region_key = request.region_key;
  entry->window->bound_key = request.key;
  return WcStatus::success;
}

void KeyTable::invalidate_all_on(std::uint32_t qp_num) {
  for (std::size_t i = 1; i < entries_.size(); ++i) invalidate(entries_[i].key, qp_num);
}

bool KeyTable::invalidate(std::uint32_t key, std::uint32_t qp_num) {
  const KeyEntry* entry = find(key);
  if (entry == nullptr || entry->kind != KeyEntry::Kind::window || entry->qp_num != qp_num) return false;
  entry->window->bound_key = 0;
  remove(key);
  return true;
}

}  // namespace rdma_rpc::fabric::software

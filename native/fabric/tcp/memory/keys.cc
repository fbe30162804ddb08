// See keys.h.
#include "fabric/tcp/memory/keys.h"

#include <algorithm>

namespace rdma_rpc::fabric::tcp {

std::uint32_t KeyTable::add(const Grant& grant) {
  std::uint32_t index = 0;
  if (free_count_ > kQuarantine || (grants_.size() > kMaxIndex && free_count_ > 0)) {
    index = first_free_;
    first_free_ = grants_[index].next_free;
    --free_count_;
  } else {
    if (grants_.size() > kMaxIndex) return 0;
    index = static_cast<std::uint32_t>(grants_.size());
    grants_.emplace_back().key = seed_ & 0xff;
  }
  Grant& place = grants_[index];
  const std::uint32_t variant = (place.key + 1) & 0xff;
  place = grant;
  place.key = index << 8 | variant;
  return place.key;
}

void KeyTable::remove(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  Grant& place = grants_[index];
  place = {};
  place.key = key;
  if (free_count_ == 0) {
    first_free_ = index;
  } else {
    grants_[last_free_].next_free = index;
  }
  last_free_ = index;
  ++free_count_;
}

Grant* KeyTable::find(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  if (index == 0 || index >= grants_.size()) return nullptr;
  Grant& place = grants_[index];
  return place.kind != Grant::Kind::free && place.key == key ? &place : nullptr;
}

void KeyTable::remove_all_of(const Window* window) {
  for (std::size_t i = 1; i < grants_.size(); ++i) {
    if (grants_[i].kind != Grant::Kind::free && grants_[i].window == window) remove(grants_[i].key);
  }
}

bool KeyTable::local_ok(const Sge& sge, std::uint32_t access) {
  if (sge.length == 0) return true;
  const Grant* grant = find(sge.lkey);
  return grant != nullptr && grant->kind == Grant::Kind::region && (grant->access & access) == access &&
         grant->contains(sge.addr, sge.length);
}

bool KeyTable::remote_ok(std::uint32_t key, std::uint32_t qp_num, std::uint64_t addr, std::uint64_t bytes,
                         std::uint32_t access) {
  const Grant* grant = find(key);
  if (grant == nullptr) return false;
  if (grant->kind == Grant::Kind::window && (grant->qp_num != qp_num || find(grant->region_key) == nullptr)) {
    return false;
  }
  return (grant->access & access) == access && grant->contains(addr, bytes);
}

bool KeyTable::withdraw(std::uint32_t key, std::uint32_t qp_num) {
  Grant* grant = find(key);
  if (grant == nullptr || grant->window == nullptr) return false;
  if (grant->kind == Grant::Kind::window && grant->qp_num != qp_num) return false;
  grant->withdrawn = true;
  return true;
}

bool KeyTable::is_withdrawn(std::uint32_t key) {
  const Grant* grant = find(key);
  return grant != nullptr && grant->withdrawn;
}

Grant* KeyTable::bound_window(std::uint32_t key, std::uint32_t qp_num) {
  Grant* grant = find(key);
  return grant != nullptr && grant->kind == Grant::Kind::window && grant->qp_num == qp_num ? grant : nullptr;
}

}  // namespace rdma_rpc::fabric::tcp

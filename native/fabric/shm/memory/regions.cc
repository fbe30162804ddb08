// See regions.h.
#include "fabric/shm/memory/regions.h"

#include <vector>

#include "fabric/shm/device.h"

namespace rdma_rpc::fabric::shm {

Region::Region(Device& device, std::uint32_t index, const KeyEntry& key_entry)
    : device_(device), index_(index) {
  addr_ = key_entry.addr;
  length_ = key_entry.length;
  lkey_ = device_.table().grant(index_, key_entry);
  if ((key_entry.access & kRemoteAccess) != 0) rkey_ = lkey_;
  ++device_.counts().memory_regions;
  device_.counts().memory_bytes += length_;
}

Region::~Region() {
  const KeyEntry own = *device_.table().find(lkey_, ProtectionTable::Kind::region);
  if ((own.access & access_mw_bind) != 0) {
    std::vector<std::pair<std::uint32_t, KeyEntry>> windows;
    device_.table().for_each(ProtectionTable::Kind::window,
                             [&](std::uint32_t key, const KeyEntry& key_entry) {
                               if (key_entry.region == lkey_) windows.emplace_back(key, key_entry);
                             });
    for (const auto& [key, key_entry] : windows) device_.revoke_and_wait(key, key_entry);
  }
  if (rkey_ != 0) device_.revoke_and_wait(rkey_, own);
  device_.table().remove(index_);
  --device_.counts().memory_regions;
  device_.counts().memory_bytes -= length_;
}

Window::Window(Device& device, std::uint32_t index) : device_(device), index_(index) {
  rkey_ = device_.table().new_key(index_);
  ++device_.counts().memory_windows;
}

Window::~Window() {
  if (const KeyEntry* key_entry = device_.table().find(rkey_, ProtectionTable::Kind::window)) {
    device_.revoke_and_wait(rkey_, KeyEntry(*key_entry));
  }
  device_.table().remove(index_);
  --device_.counts().memory_windows;
}

bool Window::bound() const { return device_.table().find(rkey_, ProtectionTable::Kind::window) != nullptr; }

void Window::bind(const KeyEntry& key_entry) { rkey_ = device_.table().grant(index_, key_entry); }

}  // namespace rdma_rpc::fabric::shm

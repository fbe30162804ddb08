// Keeps a list of unused items: slots, table indices, objects kept for reuse. The item that was returned last
// is taken first, because it is still in the cache. Any list may be empty, because a peer can break every
// rule and use up all items. Therefore take() is the only way to get an item, and its result shows whether
// there was an item. A house test enforces this (test/house/native.test.ts). This file is used by the fabrics
// and sessions, on their device's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace rdma_rpc::fabric {

template <class T = std::uint32_t>
class FreeList {
 public:
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  void reserve(std::size_t count) { items_.reserve(count); }
  void give(T item) { items_.push_back(std::move(item)); }
  /// Returns the item that was returned last, or std::nullopt when the list is empty.
  [[nodiscard]] std::optional<T> take() {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.back()));
    items_.pop_back();
    return item;
  }
  /// Returns the item that take() will return next, for prefetching, or null when the list is empty.
  const T* peek() const { return items_.empty() ? nullptr : &items_.back(); }
  /// Returns the position where take() and give() will write, for prefetching.
  const T* end() const { return items_.data() + items_.size(); }
  void clear() { items_.clear(); }

 private:
  std::vector<T> items_;
};

}  // namespace rdma_rpc::fabric

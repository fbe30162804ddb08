// Implements a FIFO queue of bounded capacity. The queue allocates memory for the largest number of entries
// that have waited at one time, so a session in which nothing ever waits costs nothing. Waiting is not on the
// hot path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rdma_rpc::session {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  bool full() const { return count_ == capacity_; }
  T& front() { return items_[head_]; }
  T& at(std::size_t index) { return items_[(head_ + index) % items_.size()]; }

  /// Returns false when the queue is full; the item is then not queued.
  bool push(T item) {
    if (full()) return false;
    if (count_ == items_.size()) grow();
    at(count_++) = std::move(item);
    return true;
  }
  void pop() {
    head_ = head_ + 1 == items_.size() ? 0 : head_ + 1;
    --count_;
  }
  template <class Predicate>
  void erase_if(Predicate&& gone) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (gone(at(i))) continue;
      if (kept != i) at(kept) = std::move(at(i));
      ++kept;
    }
    count_ = kept;
  }
  /// Removes the entry at `index`, and keeps the order of the rest.
  void erase(std::size_t index) {
    for (; index + 1 < count_; ++index) at(index) = std::move(at(index + 1));
    --count_;
  }

 private:
  static constexpr std::size_t kFirst = 8;
  void grow() {
    std::vector<T> wider(std::min(capacity_, std::max(kFirst, 2 * items_.size())));
    for (std::size_t i = 0; i < count_; ++i) wider[i] = std::move(at(i));
    items_ = std::move(wider);
    head_ = 0;
  }

  const std::size_t capacity_;
  std::vector<T> items_;
  std::size_t head_ = 0, count_ = 0;
};

}  // namespace rdma_rpc::session

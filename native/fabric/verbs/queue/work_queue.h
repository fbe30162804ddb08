// What a queue pair remembers of each request in one of its queues, in the order posted. The device has the
// first part; requests that were posted when the queue pair had failed never reach it and end here, after
// those that the device has.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::verbs {

struct Entry {
  std::uint64_t wr_id = 0;
  std::uint32_t bytes = 0;
  Opcode opcode = Opcode::send;
  WcStatus status = WcStatus::success;  ///< how it ends unless it is flushed; success: as the device says
  bool signaled = true;                 ///< its success is to be reported
  bool internal = false;                ///< nothing of it is: QueuePair::ask_for_last_packet()
};

class WorkQueue {
 public:
  explicit WorkQueue(std::uint32_t capacity) : capacity_(capacity), entries_(std::bit_ceil(capacity + 1)) {}

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t room() const { return capacity_ - (tail_ - head_) + (device_has(internal_) ? 1 : 0); }
  /// Its number comes back from the device as a part of the work request's id.
  std::uint32_t push_device(const Entry& entry) {
    at(tail_) = entry;
    device_tail_ = tail_ + 1;
    return tail_++;
  }
  /// Beside the capacity; at most one at a time.
  std::uint32_t push_internal(const Entry& entry) { return internal_ = push_device(entry); }
  void push_failed(const Entry& entry) { at(tail_++) = entry; }
  /// Goes to the device later: release() gives the number of the oldest one that has not.
  void push_held(const Entry& entry) { at(tail_++) = entry; }
  std::uint32_t release() { return device_tail_++; }
  void flush_held() {
    for (std::uint32_t number = device_tail_; number != tail_; ++number) {
      if (at(number).status == WcStatus::success) at(number).status = WcStatus::wr_flush_err;
    }
  }
  /// Some wait to go there, or have failed.
  bool holds_some() const { return device_tail_ != tail_; }
  /// The device refused this one and all after it.
  void rewind(std::uint32_t number) { device_tail_ = number; }
  bool device_has_some() const { return head_ != device_tail_; }
  std::uint32_t head() const { return head_; }
  /// The last one that the device has.
  std::uint32_t newest() const { return device_tail_ - 1; }
  /// The completion of the last one that the device has will be seen.
  bool newest_tells() { return at(device_tail_ - 1).signaled || device_has(internal_); }
  /// Not known to be complete.
  bool device_has(std::uint32_t number) const { return number - head_ < device_tail_ - head_; }
  /// The device is gone, or its queue pair: everything in it is flushed.
  void flush_all() {
    for (std::uint32_t number = head_; number != device_tail_; ++number)
      at(number).status = WcStatus::wr_flush_err;
    device_tail_ = head_;
  }
  Entry& at(std::uint32_t number) { return entries_[number & (entries_.size() - 1)]; }

  /// The device, which has it, has completed it, and with it those before.
  Entry* complete(std::uint32_t number) {
    head_ = number + 1;
    return &at(number);
  }
  /// The device has some that have not completed, or have not said so, and nothing waits behind them.
  bool last_unknown() const { return head_ != device_tail_ && tail_ == device_tail_; }
  /// The next that ends without the device, or null.
  Entry* next_failed() { return head_ == device_tail_ && head_ != tail_ ? &at(head_) : nullptr; }
  void pop_failed() { device_tail_ = ++head_; }

 private:
  std::uint32_t capacity_;
  std::vector<Entry> entries_;
  std::uint32_t head_ = 0, device_tail_ = 0, tail_ = 0;
  std::uint32_t internal_ = ~std::uint32_t{0};
};

}  // namespace rdma_rpc::fabric::verbs

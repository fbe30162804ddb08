// Keeps the requests in one of a queue pair's two queues, in the order in which they were posted. Each has
// the data that is needed when it completes. The first requests are on the device. Requests that are posted
// after the queue pair failed never reach the device. Such requests end here, after the requests that the
// device has.
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
  /// The status of the completion unless the request is flushed; success means that the device's status
  /// counts.
  WcStatus status = WcStatus::success;
  bool signaled = true;   ///< the success of the request must be reported
  bool internal = false;  ///< nothing about the request is reported; see QueuePair::ask_for_last_packet()
};

class WorkQueue {
 public:
  explicit WorkQueue(std::uint32_t capacity) : capacity_(capacity), entries_(std::bit_ceil(capacity + 1)) {}

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t room() const { return capacity_ - (tail_ - head_) + (device_has(internal_) ? 1 : 0); }
  /// The device returns this number as part of the work request's id.
  std::uint32_t push_device(const Entry& entry) {
    at(tail_) = entry;
    device_tail_ = tail_ + 1;
    return tail_++;
  }
  /// Adds an internal request, which does not count in the capacity. At most one internal request exists at a
  /// time.
  std::uint32_t push_internal(const Entry& entry) { return internal_ = push_device(entry); }
  void push_failed(const Entry& entry) { at(tail_++) = entry; }
  /// Adds a request that goes to the device later. release() returns the number of the oldest such request.
  void push_pending(const Entry& entry) { at(tail_++) = entry; }
  std::uint32_t release() { return device_tail_++; }
  void flush_held() {
    for (std::uint32_t number = device_tail_; number != tail_; ++number) {
      if (at(number).status == WcStatus::success) at(number).status = WcStatus::wr_flush_err;
    }
  }
  /// Returns whether some requests are held back or have failed.
  bool holds_some() const { return device_tail_ != tail_; }
  /// Must be called when the device has refused this request and all after it.
  void rewind(std::uint32_t number) { device_tail_ = number; }
  bool device_has_some() const { return head_ != device_tail_; }
  std::uint32_t head() const { return head_; }
  /// Returns the number of the last request that the device has.
  std::uint32_t newest() const { return device_tail_ - 1; }
  /// Returns whether a completion will show that the device's last request is complete.
  bool newest_tells() { return at(device_tail_ - 1).signaled || device_has(internal_); }
  /// Returns whether the device has this request and it is not known to be complete.
  bool device_has(std::uint32_t number) const { return number - head_ < device_tail_ - head_; }
  /// Flushes everything, when the device or its queue pair is gone.
  void flush_all() {
    for (std::uint32_t number = head_; number != device_tail_; ++number)
      at(number).status = WcStatus::wr_flush_err;
    device_tail_ = head_;
  }
  Entry& at(std::uint32_t number) { return entries_[number & (entries_.size() - 1)]; }

  /// Must be called when the device has completed this request. The requests before it are complete, too.
  Entry* complete(std::uint32_t number) {
    head_ = number + 1;
    return &at(number);
  }
  /// Must be called when the device has executed this request and all before it.
  void succeeded(std::uint32_t number) { succeeded_ = number + 1; }
  bool has_succeeded(std::uint32_t number) const {
    return static_cast<std::int32_t>(succeeded_ - number) > 0;
  }
  /// Returns the number of the next request.
  std::uint32_t next() const { return tail_; }
  /// Returns whether the device has requests that are not known to be complete, and no other request waits
  /// behind them.
  bool last_unknown() const { return head_ != device_tail_ && tail_ == device_tail_; }
  /// Returns the next request that ends without the device, or null.
  Entry* next_failed() { return head_ == device_tail_ && head_ != tail_ ? &at(head_) : nullptr; }
  void pop_failed() { device_tail_ = ++head_; }

 private:
  std::uint32_t capacity_;
  std::vector<Entry> entries_;
  std::uint32_t head_ = 0, device_tail_ = 0, tail_ = 0, succeeded_ = 0;
  std::uint32_t internal_ = ~std::uint32_t{0};
};

}  // namespace rdma_rpc::fabric::verbs

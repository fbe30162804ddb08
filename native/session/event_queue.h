// Passes events to JS by the shared array of the next batch, and by a queue. An event is queued when it does
// not fit into the array, or when JS is reading the batch. The context owns this object and uses it on the
// context's thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>

#include "session/boundary.h"
#include "session/limits.h"

namespace rdma_rpc::session {

class EventQueue {
 public:
  /// `batch` has room for kEventsMax events.
  explicit EventQueue(std::int32_t* batch) : batch_(batch) {}

  void emit(const boundary::Event& event) {
    if (!locked_ && later_.empty() && count_ < kEventsMax) {
      std::memcpy(batch_ + count_++ * boundary::ev::words, event.word, sizeof event.word);
    } else {
      later_.push_back(event);  // bounded by the calls in flight, each of which has at most three events
    }
  }
  /// Moves queued events into the batch.
  void fill() {
    for (; !later_.empty() && count_ < kEventsMax; later_.pop_front()) {
      std::memcpy(batch_ + count_++ * boundary::ev::words, later_.front().word, sizeof later_.front().word);
    }
  }
  std::uint32_t count() const { return count_; }
  std::uint32_t room() const { return later_.empty() ? kEventsMax - count_ : 0; }
  bool empty() const { return count_ == 0 && later_.empty(); }
  const std::int32_t* at(std::uint32_t index) const { return batch_ + index * boundary::ev::words; }

  /// Locks the batch, which must not change while JS reads it.
  void lock() { locked_ = true; }
  void clear_and_unlock() {
    count_ = 0;
    locked_ = false;
  }

 private:
  std::int32_t* batch_;
  std::uint32_t count_ = 0;
  bool locked_ = false;
  std::deque<boundary::Event> later_;
};

}  // namespace rdma_rpc::session

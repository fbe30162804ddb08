// Tells whether all completions that a queue contained at a given time (the mark) have been polled. This
// class is for devices that do not report how many completions are left in the queue. A queue contains at
// most one completion per entry, and completions are polled in order. All completions from before the mark
// have therefore been polled as soon as a later poll has found the queue empty, or as soon as later polls
// have returned one completion per entry of the queue. The completion queues of devices own these objects.
// Queue pairs query them on the device's thread.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric {

class TakenCompletions {
 public:
  void took(std::uint64_t count) { at_ += count; }
  void found_empty(std::uint64_t entries) { at_ += entries; }
  /// Returns a position behind everything that may be in the queue now.
  std::uint64_t mark(std::uint64_t entries) const { return at_ + entries; }
  /// Returns true when everything that was in the queue when the mark was made has been polled.
  bool has_passed(std::uint64_t mark) const { return at_ >= mark; }

 private:
  std::uint64_t at_ = 0;
};

}  // namespace rdma_rpc::fabric

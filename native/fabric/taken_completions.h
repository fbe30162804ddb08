// Tells whether all completions that were in a completion queue at a given time have been polled. This class
// is for devices that do not report how many completions are left in the queue. Completions are polled in
// order, and a queue holds at most as many completions as it has entries. So all completions of the given
// time have been polled as soon as one of two things has happened since: the queue was found empty, or as
// many completions have been polled as the queue has entries. The completion queues of devices own these
// objects. Queue pairs query them on the device's thread.
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

// Tells whether all completions that were in a queue at a given time have been polled. This class is for
// devices that do not report what is left in the queue. A queue holds at most as many completions as it has
// entries, and they are polled in order. Everything that was in the queue at that time has been polled in two
// cases: when the queue has been empty after that, or when as many completions as the queue has entries have
// been polled after that. The completion queues of devices own these objects. Queue pairs query them on the
// device's thread.
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

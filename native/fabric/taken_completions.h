// How far a completion queue has been taken out, for devices that do not say what is left in it. Completions
// come out in the order in which they went in, and there are never more of them than the queue has entries:
// so all that lay there at some moment has come out once as many have been taken since, or once the queue has
// been found empty. Kept by completion queues of devices, asked through their queue pairs, on the device's
// thread.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric {

class TakenCompletions {
 public:
  void took(std::uint64_t count) { at_ += count; }
  void found_empty(std::uint64_t entries) { at_ += entries; }
  /// A place behind everything that may be in the queue now.
  std::uint64_t mark(std::uint64_t entries) const { return at_ + entries; }
  /// Whether everything that was there when the mark was made has been taken.
  bool has_passed(std::uint64_t mark) const { return at_ >= mark; }

 private:
  std::uint64_t at_ = 0;
};

}  // namespace rdma_rpc::fabric

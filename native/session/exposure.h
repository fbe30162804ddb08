// Remote rights that last one call: windows bound to the memory of a call, and what keeps that memory in
// place meanwhile. Used by the client half of a session; the pool belongs to the context. On the context's
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/fabric.h"
#include "memory/arena.h"

namespace rdma_rpc::session {

/// Windows are made once and bound often: making one is a system call on a NIC, binding is not.
class WindowPool {
 public:
  explicit WindowPool(fabric::Device& device) : device_(device) {}
  /// Null when the device has no more.
  std::unique_ptr<fabric::MemoryWindow> take() {
    if (free_.empty()) return device_.alloc_mw();
    auto window = std::move(free_.back());
    free_.pop_back();
    return window;
  }
  /// Only windows that are invalid again, or whose queue pair is gone.
  void give_back(std::unique_ptr<fabric::MemoryWindow> window) { free_.push_back(std::move(window)); }
  void clear() { free_.clear(); }

 private:
  fabric::Device& device_;
  std::vector<std::unique_ptr<fabric::MemoryWindow>> free_;
};

/// A piece of application or arena memory that a call uses, with what holds it: an arena block or a
/// registration.
struct Piece {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  const fabric::MemoryRegion* region = nullptr;
  memory::BlockId block = memory::kNoBlock;  ///< one reference held
  std::uint64_t mr_key = 0;                  ///< pinned in the MR cache, 0: not
};

}  // namespace rdma_rpc::session

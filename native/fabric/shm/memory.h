// Memory that peers may map (alloc_memory), and the pages that had to be taken back from a peer. Used on the
// device's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/shm/segment.h"

namespace rdma_rpc::fabric::shm {

class Device;

class SharedMemory final : public HostMemory {
 public:
  SharedMemory(Device& device, std::uint32_t slot, Segment segment);
  ~SharedMemory() override;

  std::uint32_t slot() const { return slot_; }
  int fd() const { return segment_.fd.get(); }
  bool contains(std::uint64_t addr, std::uint64_t bytes) const;
  /// Whether a peer that maps this memory reaches that range.
  bool shares(std::uint64_t addr, std::uint64_t bytes) const;

  struct Range {
    std::uint64_t addr, bytes;
  };
  /// Puts private pages with the same content in the place of those of the range, and says which those are. A
  /// peer that maps this memory goes on seeing the old pages, which nobody here looks at any more. Zero
  /// bytes: the system refused.
  Range take_back(std::uint64_t addr, std::uint64_t bytes);

 private:
  Device& device_;
  std::uint32_t slot_;
  Segment segment_;
  std::vector<Range> taken_back_;
};

}  // namespace rdma_rpc::fabric::shm

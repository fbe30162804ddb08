// Allocates memory that peers may map (alloc_memory). The pages of such memory can be taken away from all
// peers at any moment. A new memfd with a copy of the pages then replaces them in this process. Peers that
// have mapped the old memfd still see the old pages, which this process no longer reads. As a result, one
// memory may consist of several memfds, each with its own slot in the device's table. This code runs on the
// device's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/shm/memory/segment.h"

namespace rdma_rpc::fabric::shm {

class Device;

struct PageRange {
  std::uint64_t addr = 0;
  std::uint64_t bytes = 0;

  bool contains(std::uint64_t from, std::uint64_t length) const {
    return from >= addr && length <= bytes && from - addr <= bytes - length;
  }
  bool overlaps(std::uint64_t from, std::uint64_t length) const {
    return from < addr + bytes && addr < from + length;
  }
};

class SharedMemory final : public HostMemory {
 public:
  SharedMemory(Device& device, Segment segment);
  ~SharedMemory() override;
  /// Takes a slot in the device's table. Returns false when all slots are in use.
  bool publish();

  /// Returns the first slot, which names the memory as a whole.
  std::uint32_t slot() const { return parts_.front().slot; }
  bool contains(std::uint64_t addr, std::uint64_t bytes) const {
    return parts_.front().range.contains(addr, bytes);
  }
  /// Returns the slot of the memfd that contains the whole range, or kNoMemory when the range is spread over
  /// several memfds.
  std::uint32_t slot_of(std::uint64_t addr, std::uint64_t bytes) const;

  /// The memfd of a slot of this memory, and its range of pages.
  struct Shown {
    int fd = -1;
    PageRange range;
  };
  Shown shown(std::uint32_t slot) const;

  /// Returns the pages that contain this range.
  static PageRange pages_of(std::uint64_t addr, std::uint64_t bytes);
  /// Moves these pages to a new memfd. Returns false when the system refuses.
  bool move_to_new_pages(const PageRange& pages);

 private:
  SharedMemory(Device& device, UniqueFd fd, const std::shared_ptr<Mapping>& map);
  struct Part {
    UniqueFd fd;
    PageRange range;
    std::uint32_t slot;
  };
  Device& device_;
  std::vector<Part> parts_;  ///< where parts overlap, the later one is mapped
};

}  // namespace rdma_rpc::fabric::shm

// Memory that peers may map (alloc_memory). It can take pages away from all peers at any moment: a copy of
// them in a new memfd takes their place here, while whoever has mapped the old one goes on seeing pages that
// nobody here looks at any more. So one memory may come to consist of several memfds, each with a slot of its
// own in the device's table. Used on the device's thread.
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
  /// Gives it its slot in the device's table. False when all are taken.
  bool publish();

  /// Its first slot, which names the memory as a whole.
  std::uint32_t slot() const { return parts_.front().slot; }
  bool contains(std::uint64_t addr, std::uint64_t bytes) const {
    return parts_.front().range.contains(addr, bytes);
  }
  /// The slot of the memfd that has the whole range, or kNoMemory: it is in several.
  std::uint32_t slot_of(std::uint64_t addr, std::uint64_t bytes) const;

  /// The memfd of a slot of this memory, and the pages that it has.
  struct Shown {
    int fd = -1;
    PageRange range;
  };
  Shown shown(std::uint32_t slot) const;

  /// The pages that hold this range.
  static PageRange pages_of(std::uint64_t addr, std::uint64_t bytes);
  /// Moves these pages to a memfd of their own. False when the system refuses.
  bool move_to_new_pages(const PageRange& pages);

 private:
  SharedMemory(Device& device, UniqueFd fd, const std::shared_ptr<Mapping>& map);
  struct Part {
    UniqueFd fd;
    PageRange range;
    std::uint32_t slot;
  };
  Device& device_;
  std::vector<Part> parts_;  ///< a later one hides what it has in common with earlier ones
};

}  // namespace rdma_rpc::fabric::shm

// See memory.h.
#include "fabric/shm/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "fabric/shm/device.h"

namespace rdma_rpc::fabric::shm {

SharedMemory::SharedMemory(Device& device, std::uint32_t slot, Segment segment)
    : device_(device), slot_(slot), segment_(std::move(segment)) {
  data_ = segment_.map.data();
  size_ = segment_.map.bytes();
}

SharedMemory::~SharedMemory() {
  device_.forget(*this);
  // Peers may keep their mapping for long; without this it would keep the pages too.
  ::fallocate(segment_.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_));
}

bool SharedMemory::contains(std::uint64_t addr, std::uint64_t bytes) const {
  const auto base = reinterpret_cast<std::uint64_t>(data_);
  return addr >= base && bytes <= size_ && addr - base <= size_ - bytes;
}

bool SharedMemory::shares(std::uint64_t addr, std::uint64_t bytes) const {
  if (!contains(addr, bytes)) return false;
  for (const Range& range : taken_back_) {
    if (addr < range.addr + range.bytes && range.addr < addr + bytes) return false;
  }
  return true;
}

SharedMemory::Range SharedMemory::take_back(std::uint64_t addr, std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = addr / page * page;
  const std::uint64_t end = (addr + bytes + page - 1) / page * page;
  const std::size_t length = end - begin;
  // Filled beside and then moved over the old pages, so that there is no moment without memory.
  void* pages = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return {begin, 0};
  std::memcpy(pages, reinterpret_cast<const void*>(begin), length);
  void* place = reinterpret_cast<void*>(begin);
  if (::mremap(pages, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED) {
    ::munmap(pages, length);
    return {begin, 0};
  }
  taken_back_.push_back({begin, length});
  return taken_back_.back();
}

}  // namespace rdma_rpc::fabric::shm

// See memory.h.
#include "fabric/shm/memory/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "fabric/shm/device.h"

namespace rdma_rpc::fabric::shm {
namespace {

/// Returns pages to the system even while a peer still maps them.
void discard(int fd, std::uint64_t offset, std::uint64_t bytes) {
  ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
}

}  // namespace

SharedMemory::SharedMemory(Device& device, Segment segment)
    : SharedMemory(device, std::move(segment.fd), std::make_shared<Mapping>(std::move(segment.map))) {}

SharedMemory::SharedMemory(Device& device, UniqueFd fd, const std::shared_ptr<Mapping>& map)
    : HostMemory({map, map->data()}, map->bytes()), device_(device) {
  parts_.push_back({std::move(fd), {reinterpret_cast<std::uint64_t>(data()), size()}, kNoMemory});
}

SharedMemory::~SharedMemory() {
  for (const Part& part : parts_) {
    if (part.slot != kNoMemory) device_.revoke(part.slot);
    discard(part.fd.get(), 0, part.range.bytes);
  }
}

bool SharedMemory::publish() {
  Part& part = parts_.front();
  part.slot = device_.publish(*this, part.range, part.fd.get());
  return part.slot != kNoMemory;
}

std::uint32_t SharedMemory::slot_of(std::uint64_t addr, std::uint64_t bytes) const {
  for (std::size_t i = parts_.size(); i-- > 0;) {
    if (parts_[i].range.contains(addr, bytes)) return parts_[i].slot;
    if (parts_[i].range.overlaps(addr, bytes)) break;
  }
  return kNoMemory;
}

SharedMemory::Shown SharedMemory::shown(std::uint32_t slot) const {
  for (const Part& part : parts_) {
    if (part.slot == slot) return {part.fd.get(), part.range};
  }
  return {};
}

PageRange SharedMemory::pages_of(std::uint64_t addr, std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = addr / page * page;
  return {begin, (addr + bytes - begin + page - 1) / page * page};
}

bool SharedMemory::move_to_new_pages(const PageRange& pages) {
  std::string error;
  Segment fresh = create_segment("rdma-rpc:moved", pages.bytes, PeerMay::write, &error);
  if (!fresh.map) return false;
  const std::uint32_t slot = device_.publish(*this, pages, fresh.fd.get());
  if (slot == kNoMemory) return false;
  // The new pages are filled beside the old ones and then moved over them, so that the range is mapped at
  // every moment.
  auto* address = reinterpret_cast<std::byte*>(pages.addr);
  std::memcpy(fresh.map.data(), address, pages.bytes);
  if (!fresh.map.move_over(address)) {
    device_.revoke(slot);
    return false;
  }
  for (const Part& part : parts_) {
    const std::uint64_t begin = std::max(part.range.addr, pages.addr);
    const std::uint64_t end = std::min(part.range.addr + part.range.bytes, pages.addr + pages.bytes);
    if (begin < end) discard(part.fd.get(), begin - part.range.addr, end - begin);
  }
  // Parts that are completely covered no longer need their slots. The first part names the memory and stays.
  for (std::size_t i = parts_.size(); i-- > 1;) {
    if (!pages.contains(parts_[i].range.addr, parts_[i].range.bytes)) continue;
    device_.revoke(parts_[i].slot);
    parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  parts_.push_back({std::move(fresh.fd), pages, slot});
  return true;
}

}  // namespace rdma_rpc::fabric::shm

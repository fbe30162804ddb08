// See huge_pages.h. A huge page that the process may not use is mapped without access, so that touching the
// page ends the test, as a SIGBUS would.
#include "nic/device/huge_pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <utility>

namespace rdma_rpc::nic {
namespace {

HugePages* script = nullptr;
constexpr int kPopulateWrite = 23;

void* kernel_mmap(void* addr, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, addr, bytes, protection, flags, fd, offset));
}

}  // namespace

HugePages::HugePages() { script = this; }
HugePages::~HugePages() { script = nullptr; }
HugePages* HugePages::current() { return script; }

HugePages::Mappings::const_iterator HugePages::find(const void* addr) const {
  const auto next = mappings_.upper_bound(reinterpret_cast<std::uintptr_t>(addr));
  if (next == mappings_.begin()) return mappings_.end();
  const auto found = std::prev(next);
  return reinterpret_cast<std::uintptr_t>(addr) < found->first + found->second.bytes ? found
                                                                                     : mappings_.end();
}

bool HugePages::charge(std::size_t pages) {
  if (pages > allowed) return false;
  allowed -= pages;
  return true;
}

std::size_t HugePages::mapped_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [addr, mapping] : mappings_) bytes += mapping.bytes;
  return bytes;
}

bool HugePages::has_all(const void* addr, std::size_t) const {
  const auto found = find(addr);
  return found == mappings_.end() || found->second.populated;
}

void* HugePages::map(std::size_t bytes, int flags) {
  const auto size = static_cast<unsigned>(flags) >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;
  const std::size_t page = size == 0 ? default_page : std::size_t{1} << size;
  const std::size_t pages = (bytes + page - 1) / page;
  if (pages > reserved[page]) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  reserved[page] -= pages;
  // Only the requested bytes are really mapped, because a whole page of 1 GiB would be much for a test.
  const bool usable = old_kernel && charge(pages);
  void* data = kernel_mmap(nullptr, bytes, usable ? PROT_READ | PROT_WRITE : PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data != MAP_FAILED) mappings_[reinterpret_cast<std::uintptr_t>(data)] = {pages * page, page, usable};
  return data;
}

int HugePages::populate(void* addr, std::size_t bytes) {
  const auto found = mappings_.find(reinterpret_cast<std::uintptr_t>(addr));
  if (old_kernel || found == mappings_.end()) {
    errno = EINVAL;
    return -1;
  }
  if (!charge(found->second.bytes / found->second.page)) {
    errno = EFAULT;
    return -1;
  }
  found->second.populated = true;
  return ::mprotect(addr, bytes, PROT_READ | PROT_WRITE);
}

int HugePages::unmap(void* addr, std::size_t bytes) {
  const auto found = mappings_.find(reinterpret_cast<std::uintptr_t>(addr));
  if (found == mappings_.end() || bytes % found->second.page != 0) {
    ++munmaps_refused;
    errno = EINVAL;
    return -1;
  }
  reserved[found->second.page] += found->second.bytes / found->second.page;
  mappings_.erase(found);
  return static_cast<int>(::syscall(SYS_munmap, addr, bytes));
}

}  // namespace rdma_rpc::nic

using rdma_rpc::nic::HugePages;

#define IN_FRONT extern "C" __attribute__((visibility("default")))

IN_FRONT void* mmap(void* addr, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  HugePages* pages = HugePages::current();
  if (pages != nullptr && (flags & MAP_HUGETLB) != 0) return pages->map(bytes, flags);
  return rdma_rpc::nic::kernel_mmap(addr, bytes, protection, flags, fd, offset);
}

IN_FRONT int munmap(void* addr, std::size_t bytes) noexcept {
  HugePages* pages = HugePages::current();
  if (pages != nullptr && pages->owns(addr)) return pages->unmap(addr, bytes);
  return static_cast<int>(::syscall(SYS_munmap, addr, bytes));
}

IN_FRONT int madvise(void* addr, std::size_t bytes, int advice) noexcept {
  HugePages* pages = HugePages::current();
  if (pages != nullptr && advice == rdma_rpc::nic::kPopulateWrite && pages->owns(addr))
    return pages->populate(addr, bytes);
  return static_cast<int>(::syscall(SYS_madvise, addr, bytes, advice));
}

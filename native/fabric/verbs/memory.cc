// See memory.h.
#include "fabric/verbs/memory.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "fabric/verbs/numa.h"
#include "fabric/verbs/optional.h"
#include "fabric/verbs/refusal.h"
#include "fabric/verbs/windows.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Only huge pages of this size are used. The default size of the system may be 1 GiB. Each block of memory
/// would then take a whole page for as long as the block lives.
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kHugePages = MAP_HUGETLB | 21 << MAP_HUGE_SHIFT;
/// Rounding up to huge pages may waste at most one part in this number of the memory.
constexpr std::size_t kWastePart = 8;

std::size_t rounded_up(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

void* map_pages(std::size_t bytes, int flags, int node) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  prefer_node(data, bytes, node);  // a refusal leaves ordinary memory
  return data;
}

/// Makes the kernel allocate the pages now. Returns false when the kernel refuses a page. A first access to
/// that page would raise SIGBUS.
bool populate(std::byte* data, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
  constexpr int kPopulate = 23;  // headers older than Linux 5.14
#endif
  if (::madvise(data, bytes, kPopulate) == 0) return true;
  if (errno != EINVAL) return false;
  // An older kernel does not have that flag. On such a kernel, a system call writes to each page. That call
  // fails where a store of this process would raise SIGBUS.
  for (std::size_t at = 0; at < bytes; at += kHugePage) {
    if (::getrandom(data + at, 1, 0) != 1) return false;
    data[at] = std::byte{0};
  }
  return true;
}

/// Returns null unless the system has enough huge pages and this process may have them. A control group
/// limits the pages when they are first used, not when they are mapped.
void* map_huge_pages(std::size_t bytes, int node) {
  void* data = map_pages(bytes, kHugePages, node);
  if (data == nullptr || populate(static_cast<std::byte*>(data), bytes)) return data;
  ::munmap(data, bytes);
  return nullptr;
}

}  // namespace

std::unique_ptr<Memory> Memory::map(std::size_t bytes, int node, std::shared_ptr<std::uint64_t> total) {
  if (bytes == 0 || bytes > SIZE_MAX - kHugePage) return nullptr;
  std::size_t mapped = bytes;
  void* data = nullptr;
  // A library that protects registered memory against fork() page by page cannot register huge pages.
  const std::size_t rounded = rounded_up(bytes);
  if (bytes >= kHugePage && rounded - bytes <= bytes / kWastePart && !guards_pages()) {
    mapped = rounded;
    data = map_huge_pages(mapped, node);
  }
  if (data == nullptr) {
    mapped = bytes;
    data = map_pages(bytes, 0, node);
    if (data != nullptr && bytes >= kHugePage) ::madvise(data, bytes, MADV_HUGEPAGE);
  }
  if (data == nullptr) return nullptr;
  return std::unique_ptr<Memory>(new Memory(mapped_pages(data, mapped), bytes, std::move(total)));
}

Memory::Memory(std::shared_ptr<std::byte> pages, std::size_t bytes, std::shared_ptr<std::uint64_t> total)
    : HostMemory(std::move(pages), bytes), total_(std::move(total)) {
  *total_ += bytes;
}

Memory::~Memory() { *total_ -= size(); }

Region::Region(MrPtr mr, std::uint64_t addr, std::uint32_t access, WindowTable& windows,
               DeviceCounters& counters)
    : mr_(std::move(mr)), access_(access), windows_(windows), counters_(counters) {
  addr_ = addr;
  length_ = mr_->length;
  lkey_ = mr_->lkey;
  rkey_ = (access & kRemoteAccess) != 0 ? mr_->rkey : 0;
  ++counters_.memory_regions;
}

Region::~Region() {
  // A device refuses to deregister a region to which a window is bound.
  if (windows_bound > 0) windows_.free_those_on(*this);
  --counters_.memory_regions;
}

Pinning::Pinning(ibv_pd* pd, void* addr, std::size_t length, std::uint32_t access, unsigned optional,
                 std::string refusal, const std::string& device, WindowTable& windows,
                 DeviceCounters& counters)
    : pd_(pd),
      addr_(addr),
      length_(length),
      access_(access),
      optional_(optional),
      refusal_(std::move(refusal)),
      device_(device),
      windows_(windows),
      counters_(counters) {}

void Pinning::pin() {
  if (!refusal_.empty()) return;
  mr_.reset(ibv_reg_mr(pd_, addr_, length_, access_ | optional_));
  // Drivers should ignore optional flags, but some drivers refuse all flags that they do not know.
  if (mr_ == nullptr && optional_ != 0 && (errno == EINVAL || errno == EOPNOTSUPP))
    mr_.reset(ibv_reg_mr(pd_, addr_, length_, access_));
  if (mr_ == nullptr) error_ = errno;
}

bool Pinning::refused_for_the_memory() const {
  // For read-only pages and pages of files, the error is EFAULT, EACCES or EOPNOTSUPP, depending on the
  // kernel.
  return mr_ == nullptr && (!refusal_.empty() || error_ == EFAULT || error_ == EACCES || error_ == EPERM ||
                            error_ == EOPNOTSUPP || error_ == EINVAL);
}

std::unique_ptr<MemoryRegion> Pinning::finish(std::string* error) {
  if (mr_ != nullptr) {
    return std::make_unique<Region>(std::move(mr_), reinterpret_cast<std::uintptr_t>(addr_), access_,
                                    windows_, counters_);
  }
  if (error != nullptr) *error = refusal_.empty() ? why_not_registered(error_, length_, device_) : refusal_;
  return nullptr;
}

}  // namespace rdma_rpc::fabric::verbs

// See memory.h.
#include "fabric/verbs/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "fabric/system_limit.h"
#include "fabric/verbs/optional.h"
#include "fabric/verbs/windows.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

void* map_pages(std::size_t bytes, int flags) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace

std::unique_ptr<Memory> Memory::map(std::size_t bytes, std::shared_ptr<std::uint64_t> total) {
  if (bytes == 0 || bytes > SIZE_MAX - kHugePage) return nullptr;
  std::size_t mapped = bytes;
  void* data = nullptr;
  // Where the library protects registered memory against fork() page by page, it cannot register huge pages.
  if (bytes >= kHugePage && !guards_pages()) {
    mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    // Fails at once unless the administrator has reserved huge pages; the kernel allocates them here, so that
    // a later access cannot fail.
    data = map_pages(mapped, MAP_HUGETLB);
  }
  if (data == nullptr) {
    mapped = bytes;
    data = map_pages(bytes, 0);
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
  // A device does not deregister a region to which a window is bound.
  if (windows_bound > 0) windows_.free_those_on(*this);
  --counters_.memory_regions;
}

Pinning::Pinning(ibv_pd* pd, void* addr, std::size_t length, std::uint32_t access, std::string refusal,
                 const std::string& device, WindowTable& windows, DeviceCounters& counters)
    : pd_(pd),
      addr_(addr),
      length_(length),
      access_(access),
      refusal_(std::move(refusal)),
      device_(device),
      windows_(windows),
      counters_(counters) {}

void Pinning::pin() {
  if (!refusal_.empty()) return;
  mr_.reset(ibv_reg_mr(pd_, addr_, length_, access_));
  if (mr_ == nullptr) error_ = errno;
}

std::unique_ptr<MemoryRegion> Pinning::finish(std::string* error) {
  if (mr_ != nullptr) {
    return std::make_unique<Region>(std::move(mr_), reinterpret_cast<std::uintptr_t>(addr_), access_,
                                    windows_, counters_);
  }
  if (error != nullptr) *error = refusal_.empty() ? why_not_registered(error_, length_, device_) : refusal_;
  return nullptr;
}

std::string why_not_registered(int error, std::size_t length, const std::string& device) {
  return "cannot register " + std::to_string(length) + " bytes on " + device + ": " + why_refused(error);
}

std::string memlock_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur) + " bytes";
}

std::string why_refused(int error) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (error != 0 && (error != ENOMEM || limit.rlim_cur == RLIM_INFINITY)) return system_refusal(error);
  // Memory registered with a device is locked, and some drivers report no error when the limit is exceeded.
  return (error == 0 ? std::string("its driver gives no reason") : std::strerror(error)) +
         "; locked memory is limited to " + memlock_limit() +
         " (raise it with ulimit -l, or LimitMEMLOCK of its service)";
}

}  // namespace rdma_rpc::fabric::verbs

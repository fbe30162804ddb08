// Simulates huge pages, because this machine need not have any. The mmap(), munmap() and madvise() of this
// program replace those of the C library, see nic.h. Without a script each call goes straight to the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace rdma_rpc::nic {

class HugePages {
 public:
  HugePages();
  ~HugePages();
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  static HugePages* current();

  std::size_t default_page = std::size_t{2} << 20;  ///< default_hugepagesz
  /// Number of pages of each size that are reserved and not mapped yet.
  std::map<std::size_t, std::size_t> reserved;
  /// Number of pages that the control group may still use. A page counts when it is first used.
  std::size_t allowed = SIZE_MAX;
  /// True for a kernel before Linux 5.14, whose madvise() cannot populate.
  bool old_kernel = false;

  /// Returns the bytes that are mapped and not unmapped yet.
  std::size_t mapped_bytes() const;
  /// Number of calls of munmap() that were refused.
  std::size_t munmaps_refused = 0;
  /// Returns whether a device finds every page of this range, which a registration needs.
  bool has_all(const void* addr, std::size_t bytes) const;

  // The following members are for the functions that replace those of the C library.
  void* map(std::size_t bytes, int flags);
  bool owns(const void* addr) const { return find(addr) != mappings_.end(); }
  int populate(void* addr, std::size_t bytes);
  int unmap(void* addr, std::size_t bytes);

 private:
  struct Mapping {
    std::size_t bytes, page;
    bool populated;
  };
  using Mappings = std::map<std::uintptr_t, Mapping>;
  Mappings::const_iterator find(const void* addr) const;
  bool charge(std::size_t pages);

  Mappings mappings_;
};

}  // namespace rdma_rpc::nic

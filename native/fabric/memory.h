// Memory that a device can reach, as libibverbs names it: what it is made of, regions, windows. Part of
// fabric.h, on the same thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace rdma_rpc::fabric {

/// Access rights, bits as in `enum ibv_access_flags`. Local read is always given.
enum Access : std::uint32_t {
  access_local_write = 1u << 0,
  access_remote_write = 1u << 1,
  access_remote_read = 1u << 2,
  access_mw_bind = 1u << 4,
  access_on_demand =
      1u << 6,  ///< only if Capabilities::on_demand: pages come in when used, nothing is pinned
};

/// Memory fit for this device (shared for shm, huge pages for a NIC): what the arena and receive slabs are
/// made of.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  std::byte* data() const { return pages_.get(); }
  std::size_t size() const { return size_; }
  /// The pages stay mapped until what this returns has gone, too, however long the memory itself, or its
  /// device, lives: somebody still has their address. What is in them then means nothing.
  std::shared_ptr<const void> keep_mapped() const { return pages_; }

 protected:
  /// `pages` unmaps them when the last who has it lets go of it.
  HostMemory(std::shared_ptr<std::byte> pages, std::size_t size) : pages_(std::move(pages)), size_(size) {}

 private:
  std::shared_ptr<std::byte> pages_;
  std::size_t size_;
};

/// Pages of mmap(); `bytes`: what munmap() is to be told of.
std::shared_ptr<std::byte> mapped_pages(void* data, std::size_t bytes);

/// Whether memory that somebody else owns is still where it was registered. A JS engine takes the memory of a
/// buffer away whenever the application hands that on.
class Presence {
 public:
  virtual ~Presence() = default;
  virtual bool present() const = 0;
};

class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;  ///< deregisters; no work request may still use it
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;
  std::uint64_t addr() const { return addr_; }
  std::uint64_t length() const { return length_; }
  std::uint32_t lkey() const { return lkey_; }
  std::uint32_t rkey() const { return rkey_; }  ///< 0 when registered without remote rights
  /// Without it the memory is there as long as the region.
  void set_presence(std::shared_ptr<const Presence> presence) { presence_ = std::move(presence); }
  bool present() const { return presence_ == nullptr || presence_->present(); }

 protected:
  MemoryRegion() = default;
  std::uint64_t addr_ = 0, length_ = 0;
  std::uint32_t lkey_ = 0, rkey_ = 0;

 private:
  std::shared_ptr<const Presence> presence_;
};

/// A type-2 window: remote rights to part of a region, on one queue pair, until invalidated. Made once, bound
/// often.
class MemoryWindow {
 public:
  virtual ~MemoryWindow() = default;
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;
  /// Changes with each bind, never 0. Only its low byte does (IBTA: the consumer's part of a key), so the key
  /// of 256 binds ago comes back. A key is good on the queue pair of its bind only: what comes back is a
  /// right of the same peer.
  std::uint32_t rkey() const { return rkey_; }

 protected:
  MemoryWindow() = default;
  std::uint32_t rkey_ = 0;
};

/// A registration in two steps, for a device whose driver takes its time to pin the pages of a large buffer.
class Registration {
 public:
  virtual ~Registration() = default;
  /// The slow step, on any thread. The device must stay open meanwhile.
  virtual void pin() = 0;
  /// After it, once, on the device's thread: what reg_mr() would have returned.
  virtual std::unique_ptr<MemoryRegion> finish(std::string* error) = 0;
};

}  // namespace rdma_rpc::fabric

// Declares the memory that a device can reach, named as in libibverbs: host memory, regions, windows. This
// file is part of fabric.h and is used on the same thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace rdma_rpc::fabric {

/// Access rights. Their bits are those of `enum ibv_access_flags`. Local read is always granted.
enum Access : std::uint32_t {
  access_local_write = 1u << 0,
  access_remote_write = 1u << 1,
  access_remote_read = 1u << 2,
  access_remote_atomic = 1u << 3,  ///< only if Capabilities::atomics
  access_mw_bind = 1u << 4,
  access_on_demand =
      1u << 6,  ///< only if Capabilities::on_demand: pages are loaded when they are accessed, and nothing is
                ///< pinned
};

/// Rights that may be granted to peers.
inline constexpr std::uint32_t kRemoteAccess =
    access_remote_read | access_remote_write | access_remote_atomic;

/// Memory suited to the device (shared for shm, huge pages for a NIC). The arena and the receive slabs
/// consist of it.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  std::byte* data() const { return pages_.get(); }
  std::size_t size() const { return size_; }
  /// Keeps the pages mapped as long as the result lives, even after the memory object or its device is
  /// destroyed. This is for users that still have an address in the memory. The content of the pages is
  /// undefined from then on.
  std::shared_ptr<const void> keep_mapped() const { return pages_; }

 protected:
  /// `pages` unmaps the memory when its last owner releases it.
  HostMemory(std::shared_ptr<std::byte> pages, std::size_t size) : pages_(std::move(pages)), size_(size) {}

 private:
  std::shared_ptr<std::byte> pages_;
  std::size_t size_;
};

/// Wraps pages from mmap(). `bytes` is the length for munmap().
std::shared_ptr<std::byte> mapped_pages(void* data, std::size_t bytes);

/// Tells whether memory of another owner still exists where it was registered. When an application transfers
/// a buffer, the JS engine takes the memory away from the old buffer.
class Presence {
 public:
  virtual ~Presence() = default;
  virtual bool present() const = 0;
};

class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;  ///< deregisters; no work request may still use the region
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;
  std::uint64_t addr() const { return addr_; }
  std::uint64_t length() const { return length_; }
  std::uint32_t lkey() const { return lkey_; }
  std::uint32_t rkey() const { return rkey_; }  ///< 0 when registered without remote rights
  /// Sets the object that tells whether the memory still exists. Without such an object, the memory is
  /// assumed to exist as long as the region.
  void set_presence(std::shared_ptr<const Presence> presence) { presence_ = std::move(presence); }
  bool present() const { return presence_ == nullptr || presence_->present(); }

 protected:
  MemoryRegion() = default;
  std::uint64_t addr_ = 0, length_ = 0;
  std::uint32_t lkey_ = 0, rkey_ = 0;

 private:
  std::shared_ptr<const Presence> presence_;
};

/// A type-2 window: remote rights to a part of a region, on one queue pair, until they are invalidated. A
/// window is created once and bound often.
class MemoryWindow {
 public:
  virtual ~MemoryWindow() = default;
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;
  /// Returns the key of the window. The key changes with each bind, and is never 0. Only its low byte changes
  /// (IBTA: the consumer's part of a key), so a key repeats after 256 binds. A key is valid only on the queue
  /// pair of its bind, so a repeated key grants its right to the same peer.
  std::uint32_t rkey() const { return rkey_; }

 protected:
  MemoryWindow() = default;
  std::uint32_t rkey_ = 0;
};

/// A registration in two steps, for devices whose drivers need long to pin the pages of a large buffer.
class Registration {
 public:
  virtual ~Registration() = default;
  /// Performs the slow step. May be called on any thread. The device must stay open until it returns.
  virtual void pin() = 0;
  /// Must be called once after pin(), on the device's thread. Returns what reg_mr() would have returned.
  virtual std::unique_ptr<MemoryRegion> finish(std::string* error) = 0;
};

}  // namespace rdma_rpc::fabric

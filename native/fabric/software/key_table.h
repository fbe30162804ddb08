// Implements the protection table of a software device. The table contains the access rights of each key. The
// table is consulted for every byte that a request of a peer moves, so a key gives no access from the moment
// at which it ends. This file is used by sim and tcp, on the device's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::software {

class Window;

struct KeyEntry {
  // An unbound window has no rights and no bytes.
  enum class Kind : std::uint8_t { free, region, unbound, window };
  Kind kind = Kind::free;
  std::uint32_t key = 0;
  std::uint32_t access = 0;
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint32_t qp_num = 0;              ///< for a window: number of the queue pair that it is bound to
  std::uint32_t region_key = 0;          ///< for a window: key of its region
  Window* window = nullptr;              ///< for a window: the window itself
  const MemoryRegion* region = nullptr;  ///< for a region: the region itself
  bool revoked = false;                  ///< for a window, bound or not yet bound: its memory may be gone
  std::uint32_t next_free = 0;

  /// Returns whether the entry contains these bytes. The comparison is written so that no sum can overflow.
  bool contains(std::uint64_t start, std::uint64_t bytes) const {
    return start >= addr && start - addr <= length && bytes <= length - (start - addr);
  }
};

/// A posted bind.
struct BindRequest {
  /// The members are keys rather than pointers, because the objects may be gone when the bind is executed.
  std::uint32_t key, region_key;
  std::uint32_t access;
  std::uint64_t addr, length;
};

class KeyTable {
 public:
  /// `seed` determines which keys come first, so that keys of another device or of an earlier process are not
  /// valid here.
  explicit KeyTable(std::uint32_t seed) : entries_(1), seed_(seed) {}

  /// Adds the entry under a new key, and returns the key; returns 0 when all keys are in use. Keys are `index
  /// << 8 | variant`. The variant changes with each use of an index, and a freed index is reused last, so
  /// that a stale key stays invalid for long.
  std::uint32_t add(const KeyEntry& entry);
  /// Removes a key, which must exist.
  void remove(std::uint32_t key);
  /// Returns the entry of a key, or null for an unused key.
  KeyEntry* find(std::uint32_t key);
  /// Removes every key of a window that is being destroyed.
  void remove_all_of(const Window* window);

  /// Returns whether a local scatter or gather entry may be used. `access` is 0 for reading.
  bool local_ok(const Sge& sge, std::uint32_t access);
  /// Returns whether the peer of that queue pair has this access.
  bool remote_ok(std::uint32_t key, std::uint32_t qp_num, std::uint64_t addr, std::uint64_t bytes,
                 std::uint32_t access);

  /// Executes a bind for that queue pair. If the bind is not allowed, its key stays unbound.
  WcStatus bind(const BindRequest& request, std::uint32_t qp_num);
  /// Invalidates a window of that queue pair. Returns false when the key names no such window.
  bool invalidate(std::uint32_t key, std::uint32_t qp_num);
  /// Invalidates every window of queue pair `qp_num`.
  void invalidate_all_on(std::uint32_t qp_num);
  /// See QueuePair::revoke(). Returns false when the key names no window of queue pair `qp_num`.
  bool revoke(std::uint32_t key, std::uint32_t qp_num);
  bool is_revoked(std::uint32_t key);
  /// Returns whether the memory behind a key still exists for the peer. Behind a window's key is the memory
  /// of its region.
  bool present(std::uint32_t key);

 private:
  static constexpr std::uint32_t kQuarantine = 1024;
  static constexpr std::uint32_t kMaxIndex = (1u << 24) - 1;

  std::vector<KeyEntry> entries_;  // entry 0 is never used, because key 0 means no key
  std::uint32_t seed_;
  std::uint32_t first_free_ = 0, last_free_ = 0, free_count_ = 0;
};

}  // namespace rdma_rpc::fabric::software

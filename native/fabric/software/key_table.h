// The protection table of a device that is made in software: what each key gives access to. Asked for every
// byte that a request of a peer moves, so that a key that has ended opens nothing from then on. Used by sim
// and tcp, on the device's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::software {

class Window;

struct KeyEntry {
  enum class Kind : std::uint8_t { free, region, unbound, window };  // unbound: no rights, no bytes
  Kind kind = Kind::free;
  std::uint32_t key = 0;
  std::uint32_t access = 0;
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint32_t qp_num = 0;              ///< window: the queue pair that it is tied to
  std::uint32_t region_key = 0;          ///< window: the region beneath
  Window* window = nullptr;              ///< window: its object
  const MemoryRegion* region = nullptr;  ///< region: its object
  bool withdrawn = false;                ///< window, bound or about to be: its memory may have gone
  std::uint32_t next_free = 0;

  /// Written so that no sum can wrap.
  bool contains(std::uint64_t start, std::uint64_t bytes) const {
    return start >= addr && start - addr <= length && bytes <= length - (start - addr);
  }
};

/// A bind that has been posted.
struct BindRequest {
  std::uint32_t key, region_key;  ///< keys, since the objects may be gone when its turn comes
  std::uint32_t access;
  std::uint64_t addr, length;
};

class KeyTable {
 public:
  /// `seed` decides where keys begin, so that those of another device, or of an earlier process, are not good
  /// for this one.
  explicit KeyTable(std::uint32_t seed) : entries_(1), seed_(seed) {}

  /// Files the entry under a new key; returns 0 when all keys are taken. Keys are `index << 8 | variant`. The
  /// variant changes with each use of an index, and an index rests while few others are free, so that a stale
  /// key finds nothing for long.
  std::uint32_t add(const KeyEntry& entry);
  /// The key must be there.
  void remove(std::uint32_t key);
  /// Returns null for a key that is not in use.
  KeyEntry* find(std::uint32_t key);
  /// Drops every key of a window that is going away.
  void remove_all_of(const Window* window);

  /// Whether a local entry may be used; `access` is 0 to read it.
  bool local_ok(const Sge& sge, std::uint32_t access);
  /// Whether the peer of that queue pair may do this. Through a window that is_withdrawn() nothing is to be
  /// moved all the same.
  bool remote_ok(std::uint32_t key, std::uint32_t qp_num, std::uint64_t addr, std::uint64_t bytes,
                 std::uint32_t access);

  /// Carries out a bind for that queue pair. One that is not allowed leaves its key unused.
  WcStatus bind(const BindRequest& request, std::uint32_t qp_num);
  /// Ends a window of that queue pair. Returns false when that is none.
  bool invalidate(std::uint32_t key, std::uint32_t qp_num);
  /// See QueuePair. Returns false when this is no window, or another queue pair's.
  bool withdraw(std::uint32_t key, std::uint32_t qp_num);
  bool is_withdrawn(std::uint32_t key);
  /// Whether the memory behind a key, or of the region beneath it, is still there for the peer.
  bool present(std::uint32_t key);

 private:
  static constexpr std::uint32_t kQuarantine = 1024;
  static constexpr std::uint32_t kMaxIndex = (1u << 24) - 1;

  std::vector<KeyEntry> entries_;  // entry 0 is never used: key 0 means "none"
  std::uint32_t seed_;
  std::uint32_t first_free_ = 0, last_free_ = 0, free_count_ = 0;
};

}  // namespace rdma_rpc::fabric::software

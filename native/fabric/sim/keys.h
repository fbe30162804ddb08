// The protection table of a simulated world: what each key gives access to. Used by devices (registration),
// queue pairs (bind, invalidate) and every carried-out request (checks).
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

class SimMemoryWindow;

struct KeyEntry {
  enum class Kind : std::uint8_t { free, region, window_unbound, window };  // unbound: no rights, no bytes
  Kind kind = Kind::free;
  std::uint32_t key = 0;
  std::uint32_t device_id = 0;
  std::uint32_t access = 0;
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint32_t qp_num = 0;              ///< window: the queue pair that it is tied to
  std::uint32_t region_key = 0;          ///< window: the region beneath
  SimMemoryWindow* window = nullptr;     ///< window: its object
  const MemoryRegion* region = nullptr;  ///< region: its object
  bool withdrawn = false;                ///< window, bound or about to be
  std::uint32_t next_free = 0;

  bool contains(std::uint64_t start, std::uint64_t bytes) const {
    return start >= addr && start - addr <= length && bytes <= length - (start - addr);
  }
};

class KeyTable {
 public:
  KeyTable();

  /// Files the entry under a new key; 0 when all keys are taken. Keys are `index << 8 | variant`: the variant
  /// changes with each use of an index, and an index rests while at least kQuarantine others are free, so
  /// that a stale key finds nothing for a long time.
  std::uint32_t add(const KeyEntry& entry);
  /// The entry must be there.
  void remove(std::uint32_t key);
  /// Null for a key that is not in use.
  KeyEntry* find(std::uint32_t key);
  /// Drops every key of a window that is going away.
  void remove_all_of(const SimMemoryWindow* window);

  /// Whether a local SGE may be used on this device; `access` is 0 to read it.
  bool local_ok(const Sge& sge, std::uint32_t device_id, std::uint32_t access);
  /// Whether a peer may do this through a queue pair of this device.
  bool remote_ok(std::uint32_t key, std::uint32_t device_id, std::uint32_t qp_num, std::uint64_t addr,
                 std::uint64_t bytes, std::uint32_t access);
  /// See QueuePair. False: this is no window of that queue pair.
  bool withdraw(std::uint32_t key, std::uint32_t device_id, std::uint32_t qp_num);
  /// Whether the memory behind a key, or the region beneath it, is still there for the peer.
  bool present(std::uint32_t key);
  /// The bound window of this key if it is tied to that queue pair, else null.
  KeyEntry* bound_window(std::uint32_t key, std::uint32_t device_id, std::uint32_t qp_num);

 private:
  static constexpr std::uint32_t kQuarantine = 1024;
  static constexpr std::uint32_t kMaxIndex = (1u << 24) - 1;

  std::vector<KeyEntry> entries_;  // entry 0 is never used: key 0 means "none"
  std::uint32_t first_free_ = 0, last_free_ = 0, free_count_ = 0;
};

}  // namespace rdma_rpc::fabric

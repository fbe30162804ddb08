// The registered arena: memory that the fabric can reach, handed out in blocks. Bulk payloads land in it (a server's READs,
// the sinks that a client grants) and applications allocate from it. Blocks are reused hot (last freed, first given):
// fresh pages cost more than the copy into them.
// Called by the session and, for leases, by the binding; on the context's thread only.
//
// Small classes (4 KiB to 1 MiB) are carved from shared chunks that stay; a larger block has a chunk of its own, which goes back to the
// system when another class needs the budget. Block numbers are stable while their chunk lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::memory {

using BlockId = std::uint32_t;
inline constexpr BlockId kNoBlock = 0;

struct ArenaOptions {
  std::size_t budget_bytes = std::size_t{256} << 20;  ///< chunks never add up to more
  std::size_t chunk_bytes = std::size_t{4} << 20;     ///< of the small classes
};

struct ArenaCounters {
  std::uint64_t bytes_reserved = 0;  ///< chunks
  std::uint64_t bytes_leased = 0;    ///< blocks with a reference
  std::uint64_t blocks_leased = 0;
  std::uint64_t allocs = 0, reused = 0, refused = 0, trimmed_chunks = 0;
};

struct Block {
  std::byte* data = nullptr;
  std::size_t capacity = 0;  ///< of its class, ≥ what was asked
  const fabric::MemoryRegion* region = nullptr;  ///< registered local_write | mw_bind
};

class Arena {
 public:
  Arena(fabric::Device& device, ArenaOptions options);
  ~Arena();

  /// A block with one reference, or kNoBlock when the budget (or the system) has no room: wait for a release, or refuse the call.
  BlockId alloc(std::size_t bytes);
  void retain(BlockId id);
  /// Drops a reference; the last one makes the block free for reuse.
  void release(BlockId id);
  const Block& at(BlockId id) const;
  bool live(BlockId id) const;  ///< has a reference; false for any number never given out
  /// The leased block that holds [data, data + bytes), or kNoBlock.
  BlockId find(const void* data, std::size_t bytes) const;
  /// The largest block that could ever be had.
  std::size_t largest() const { return options_.budget_bytes; }

  /// Called before an idle chunk goes back to the system, once per block of it: the owner must drop its views of that memory now.
  void on_retire(std::function<void(BlockId)> callback) { on_retire_ = std::move(callback); }
  ArenaCounters counters() const;

 private:
  ArenaOptions options_;
  std::function<void(BlockId)> on_retire_;
};

}  // namespace rdma_rpc::memory

// The registered arena: memory that the fabric can reach, handed out in blocks. Bulk payloads arrive in it (a
// server's READs, the reply buffers of a client) and applications allocate from it. Blocks are reused while
// cache-hot (last freed, first allocated): fresh pages cost more than the copy into them. Called by the
// session and, for leases, by the binding; on the context's thread only.
//
// Small classes (4 KiB to 1 MiB) are carved from shared chunks that stay; a larger block has a chunk of its
// own, which goes back to the system when another class needs the budget. Block numbers are stable while
// their chunk lives, positive as int32, and sparse: they contain a generation, so that the number of a block
// whose chunk has gone never becomes valid again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::memory {

using BlockId = std::uint32_t;
inline constexpr BlockId kNoBlock = 0;

/// Identifies the session that a block is charged to; kNobody for none.
using OwnerId = std::uint32_t;
inline constexpr OwnerId kNobody = 0;

/// The use of a block, in the order of a call's steps. Blocks of earlier steps are released when later
/// steps complete, so earlier steps must leave room for later ones. Otherwise calls would wait for each
/// other's memory for ever, especially when client and server share an arena.
enum class Use : std::uint8_t {
  ahead,         ///< a stream message that its reader has not requested yet
  part,          ///< an outgoing stream message
  request,       ///< an outgoing request
  fetch,         ///< a request that a server fetches by READ
  response,      ///< an outgoing response
  reply_buffer,  ///< the reply buffer of a client
  application
};
inline constexpr std::size_t kUses = 7;
/// Eighths of the arena that blocks of a use, together with those of earlier uses, may occupy. A lone
/// request, or the lone message of a later step, may be larger.
inline constexpr std::array<std::size_t, kUses> kShareOfUse = {1, 2, 4, 6, 7, 8, 8};

/// Memory for messages read ahead is limited to this fraction (1/n) of the memory for an owner's requests.
inline constexpr std::size_t kAheadOfRequests =
    kShareOfUse[static_cast<std::size_t>(Use::fetch)] / kShareOfUse[static_cast<std::size_t>(Use::ahead)];

/// An owner that has blocks of a use gets another one only if all its blocks of this use and earlier ones are
/// at most this many times what is left. A greedy owner thus leaves a quarter to the others.
inline constexpr std::size_t kOwnerShare = 3;
/// This fraction (1/n) of a use's memory is divided equally among all owners as a reserve: an owner can take
/// only its own part of it, up to its share. However many owners are greedy, each thus has a share that the
/// others cannot take. It is half of the memory that later steps of calls have for themselves (kShareOfUse),
/// so later steps never wait because of the reserve of inactive owners.
inline constexpr std::size_t kReservedShare = 16;

/// Chunks that have been idle for long go back to the system except for this amount, the last used:
/// occasional large calls then find warm pages.
inline constexpr std::size_t kKeptIdleBytes = std::size_t{8} << 20;
/// Maximum number of bytes that are returned to the system at a time, since each page takes time: 2 to 4 ms
/// in total on a slow virtual machine.
inline constexpr std::size_t kTrimBytes = std::size_t{32} << 20;

struct ArenaOptions {
  std::size_t budget_bytes = std::size_t{256} << 20;  ///< limit of the sum of all chunks
  std::size_t chunk_bytes = std::size_t{4} << 20;     ///< size of chunks for the small classes
  std::uint32_t remote_access = 0;     ///< rights of the peer when the device has no windows; 0 for none
  std::string_view purpose = "arena";  ///< name of the memory in the device
};

struct ArenaCounters {
  std::uint64_t bytes_reserved = 0;  ///< memory of all chunks
  std::uint64_t bytes_leased = 0;    ///< blocks that have a reference
  std::uint64_t blocks_leased = 0;
  std::uint64_t releases = 0;  ///< number of last references released, of blocks that had been used
  std::uint64_t allocs = 0, reused = 0, refused = 0, trimmed_chunks = 0;
  /// part of `refused`: memory reserved for peers (Use::fetch, Use::response)
  std::uint64_t refused_for_peers = 0;
  std::uint64_t stale =
      0;  ///< retain or release of a block without a reference: a bug of the caller, but harmless
};

struct Block {
  std::byte* data = nullptr;
  std::size_t capacity = 0;                      ///< size of its class, ≥ the requested size
  const fabric::MemoryRegion* region = nullptr;  ///< has local_write, and mw_bind or remote_access
};

class Arena {
 public:
  Arena(fabric::Device& device, ArenaOptions options);
  ~Arena();

  /// Returns a block with one reference, or kNoBlock when the budget, the system, or the share of this use or
  /// owner has no room: wait for a release, or refuse the call.
  BlockId alloc(std::size_t bytes, Use use = Use::application, OwnerId owner = kNobody);
  /// Adds an owner that gets a share; a single owner gets everything. `own_max` limits the bytes of the
  /// requests that the owner reads, and the bytes of the responses that it sends; a single response may be
  /// larger. 0 for no limit.
  OwnerId add_owner(std::size_t own_max = 0);
  /// The owner allocates no more. Its blocks stay charged to it until they are released.
  void remove_owner(OwnerId owner);
  /// Whether its share keeps this owner from getting a block of that size; others may still get one.
  bool beyond_share(std::size_t bytes, Use use, OwnerId owner) const;
  /// Whether its own limit does (add_owner()); for messages read ahead, a part of that limit, as in the
  /// arena.
  bool beyond_own_limit(std::size_t bytes, Use use, OwnerId owner) const;
  /// Whether owners other than this one have been refused memory reserved for peers since
  /// ArenaCounters::refused_for_peers had the value `since`.
  bool refused_others(OwnerId owner, std::uint64_t since) const;
  void retain(BlockId id);
  /// Drops a reference; the last one frees the block for reuse. For an invalid number nothing happens, except
  /// that it is counted.
  void release(BlockId id);
  /// Releases a block that was never used. It does not count in ArenaCounters::releases, since no memory has
  /// come free that a waiting caller could not have had before.
  void release_unused(BlockId id);
  /// The block while live(id), else an empty one. The reference stays valid until the block's chunk is
  /// retired.
  const Block& at(BlockId id) const;
  /// The same for a block that may be free. Returns null for a number that no block has.
  const Block* known(BlockId id) const;
  bool live(BlockId id) const;  ///< whether it has a reference; false for any number that was never given out
  /// Returns the leased block that contains [data, data + bytes), or kNoBlock.
  BlockId find(const void* data, std::size_t bytes) const;
  /// Keeps the pages of this block, leased or not, mapped until the result is released, even if its chunk or
  /// the arena goes first. Returns null for a number that no block has.
  std::shared_ptr<const void> keep_mapped(BlockId id);
  /// Why the system refused memory for the last alloc(). Empty when it did not, or when our own limits
  /// refused.
  const std::string& refusal() const { return refusal_; }
  /// The largest block that could ever be allocated.
  std::size_t largest() const { return options_.budget_bytes; }

  /// Whether chunks could go back to the system after having been idle for long.
  bool trimmable() const { return idle_bytes_ > kKeptIdleBytes; }
  /// Call about once a second. A chunk counts as idle for long when it has not been used since the last but
  /// one mark_idle().
  void mark_idle() { idle_marks_ = {idle_marks_[1], idle_clock_}; }
  /// Gives kTrimBytes of them back, beginning with the longest idle. Returns true when more are left.
  bool trim_idle();

  /// `callback` is called before an idle chunk goes back to the system, once per block of it: the owner must
  /// drop its views of that memory then, and must not call alloc(). The destructor does not call it.
  void on_retire(std::function<void(BlockId)> callback) { on_retire_ = std::move(callback); }
  ArenaCounters counters() const;

  /// Called before the device is destroyed, with everything registered on it. Leased blocks keep their memory
  /// until they are released; alloc() has no room from then on.
  void leave_device();

 private:
  struct Chunk {
    std::unique_ptr<fabric::HostMemory> memory;
    std::unique_ptr<fabric::MemoryRegion> region;  // declared after the memory, so destroyed first
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    std::size_t block_bytes = 0;
    std::size_t size_class = 0;
    std::vector<std::uint32_t> slots;  // slots of its blocks, by position
    std::uint32_t leased = 0;
    std::uint64_t idle_since = 0;  // value of idle_clock_ when `leased` fell to 0
  };

  struct Owner {
    std::array<std::size_t, kUses> held{};  // bytes leased, by use
    std::size_t own_max = 0;                // 0 for no limit
    bool present = false;
    std::uint64_t refused_at = 0;  // value of `refused_for_peers` when it was last counted for this owner
  };

  struct Slot {
    Block block;
    Chunk* chunk = nullptr;  // null when the number is free
    std::uint32_t references = 0;
    std::uint32_t generation = 0;
    std::uint32_t next_free = 0;  // next in the free list of its class; 0 at the end
    Use use = Use::application;   // of the current lease
    OwnerId owner = kNobody;      // of the current lease
    bool warm = false;            // has been leased before
  };

  // 4 KiB to 1 MiB in powers of two, then four steps per power of two up to 2^43.
  static constexpr std::size_t kSmallClasses = 9;
  static constexpr std::size_t kClasses = kSmallClasses + 4 * 23;

  static std::size_t class_of(std::size_t bytes);
  std::size_t class_bytes(std::size_t size_class) const;
  const Slot* leased_slot(BlockId id) const;
  bool within_share(std::size_t bytes, Use use) const;
  BlockId lease(std::size_t size_class, Use use, OwnerId owner);
  bool grow(std::size_t size_class);
  bool add_chunk(std::size_t size_class, std::size_t bytes);
  bool trim();
  void retire(Chunk& chunk);
  BlockId id_of(std::uint32_t slot) const;

  fabric::Device* device_;  ///< null after leave_device()
  ArenaOptions options_;
  std::function<void(BlockId)> on_retire_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // by address
  std::deque<Slot> slots_;                      // [0] is never used; a deque, because at() returns references
  std::deque<std::uint32_t> spare_slots_;       // oldest first, so that a generation lasts long
  std::array<std::uint32_t, kClasses> free_{};  // last freed slot of each class, 0 for none
  std::array<std::size_t, kUses> held_{};       // bytes leased, by use
  std::vector<Owner> owners_;                   // [kNobody] is never present
  std::size_t owners_present_ = 0;
  std::size_t idle_bytes_ = 0;  // memory of chunks without a lease
  std::uint64_t idle_clock_ = 0;
  std::array<std::uint64_t, 2> idle_marks_{};  // values of idle_clock_ at the last two calls of mark_idle()
  std::string refusal_;
  ArenaCounters counters_;
};

}  // namespace rdma_rpc::memory

// The registered arena: memory that the fabric can reach, handed out in blocks. Bulk payloads land in it (a
// server's READs, the sinks that a client grants) and applications allocate from it. Blocks are reused hot
// (last freed, first given): fresh pages cost more than the copy into them. Called by the session and, for
// leases, by the binding; on the context's thread only.
//
// Small classes (4 KiB to 1 MiB) are carved from shared chunks that stay; a larger block has a chunk of its
// own, which goes back to the system when another class needs the budget. Block numbers are stable while
// their chunk lives, positive as int32, and sparse: they carry a generation, so that the number of a block
// whose chunk has gone is dead and stays so.
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

/// Whom a block counts for: a session, or nobody.
using OwnerId = std::uint32_t;
inline constexpr OwnerId kNobody = 0;

/// What a block is for, in the order of a call's steps. Blocks of earlier steps are given back when later
/// ones are done, so they must leave room for those: else calls wait for each other's memory for ever, all
/// the more where client and server share an arena.
enum class Use : std::uint8_t {
  ahead,     ///< a stream's message that its reader has not asked for yet
  part,      ///< a stream's message on its way out
  request,   ///< a request that is being sent
  fetch,     ///< a request that a server reads
  response,  ///< a response that is being sent
  sink,      ///< a response that a client receives
  application
};
inline constexpr std::size_t kUses = 7;
/// Eighths of the arena that blocks of a use and of those before it may hold together. A lone request, or the
/// lone message of a later step, may be larger.
inline constexpr std::array<std::size_t, kUses> kShareOfUse = {1, 2, 4, 6, 7, 8, 8};

/// What is read ahead may hold one in so many bytes of what one owner's requests may.
inline constexpr std::size_t kAheadOfRequests =
    kShareOfUse[static_cast<std::size_t>(Use::fetch)] / kShareOfUse[static_cast<std::size_t>(Use::ahead)];

/// An owner that holds blocks for a use gets another one only as long as all that it holds for this use and
/// those before is no more than so many times what is left: a greedy one leaves a quarter to the others.
inline constexpr std::size_t kOwnerShare = 3;
/// And one in so many bytes of what a use may have is divided among all owners: nobody gets a part of it but
/// for what he has less than his own. So however many are greedy, each has a share that they cannot take.
/// Half of what the later steps of calls have for themselves (kShareOfUse): those never have to wait for
/// owners that ask for nothing.
inline constexpr std::size_t kReservedShare = 16;

/// Chunks that nobody has used for long go back to the system but for this much, the last used: a few large
/// calls at a time find warm pages whenever they come.
inline constexpr std::size_t kKeptIdleBytes = std::size_t{8} << 20;
/// How much goes back at once, since each page of it takes time: 2 to 4 ms on a slow virtual machine.
inline constexpr std::size_t kTrimBytes = std::size_t{32} << 20;

struct ArenaOptions {
  std::size_t budget_bytes = std::size_t{256} << 20;  ///< chunks never add up to more
  std::size_t chunk_bytes = std::size_t{4} << 20;     ///< of the small classes
  std::uint32_t remote_access = 0;                    ///< of the peer, without windows; 0: none
  std::string_view purpose = "arena";                 ///< named in the device's memory
};

struct ArenaCounters {
  std::uint64_t bytes_reserved = 0;  ///< chunks
  std::uint64_t bytes_leased = 0;    ///< blocks with a reference
  std::uint64_t blocks_leased = 0;
  std::uint64_t releases = 0;  ///< of last references, to blocks that were used
  std::uint64_t allocs = 0, reused = 0, refused = 0, trimmed_chunks = 0;
  std::uint64_t refused_for_peers = 0;  ///< of these, for what is kept for peers (Use::fetch, Use::response)
  std::uint64_t stale =
      0;  ///< retain or release of a block without a reference: a bug of the caller, otherwise harmless
};

struct Block {
  std::byte* data = nullptr;
  std::size_t capacity = 0;                      ///< of its class, ≥ what was asked
  const fabric::MemoryRegion* region = nullptr;  ///< with local_write, and mw_bind or remote_access
};

class Arena {
 public:
  Arena(fabric::Device& device, ArenaOptions options);
  ~Arena();

  /// A block with one reference, or kNoBlock when the budget (or the system, or the share of this use or
  /// owner) has no room: wait for a release, or refuse the call.
  BlockId alloc(std::size_t bytes, Use use = Use::application, OwnerId owner = kNobody);
  /// Somebody who has a share: where there is only one, it is everything. `own_max`: bytes that requests
  /// which it reads may hold all the same, and bytes that answers which it sends may hold, of which one alone
  /// may be larger; 0: no such limit.
  OwnerId add_owner(std::size_t own_max = 0);
  /// It asks for nothing any more. What it holds counts for it until it is released.
  void remove_owner(OwnerId owner);
  /// Its share is what keeps this owner from a block of that size: others may be given one.
  bool beyond_share(std::size_t bytes, Use use, OwnerId owner) const;
  /// The limit of its own is (add_owner()): a part of it for what is read ahead, as of the arena.
  bool beyond_own_limit(std::size_t bytes, Use use, OwnerId owner) const;
  /// Others than this owner have been refused what is kept for peers (ArenaCounters::refused_for_peers) since
  /// that counter had this value.
  bool refused_others(OwnerId owner, std::uint64_t since) const;
  void retain(BlockId id);
  /// Drops a reference; the last one makes the block free for reuse. Of a dead number: nothing happens, and
  /// it is counted.
  void release(BlockId id);
  /// The same for a block that has not been used: those who wait for memory could have had it before, so for
  /// them nothing comes free (ArenaCounters::releases).
  void release_unused(BlockId id);
  /// The block while live(id), an empty one otherwise. The reference stays valid until the block's chunk is
  /// retired.
  const Block& at(BlockId id) const;
  /// The same of a block that may be free: null for a number that no block has.
  const Block* known(BlockId id) const;
  bool live(BlockId id) const;  ///< has a reference; false for any number never given out
  /// The leased block that holds [data, data + bytes), or kNoBlock.
  BlockId find(const void* data, std::size_t bytes) const;
  /// The pages of this block, leased or not, stay mapped until the result has gone, also when its chunk or
  /// the arena goes first. Null for a number that no block has.
  std::shared_ptr<const void> keep_mapped(BlockId id);
  /// Why the system has refused what the last alloc() asked for; empty: it did not, or limits of ours did.
  const std::string& refusal() const { return refusal_; }
  /// The largest block that could ever be had.
  std::size_t largest() const { return options_.budget_bytes; }

  /// Chunks that could go back to the system when they have been idle for long.
  bool trimmable() const { return idle_bytes_ > kKeptIdleBytes; }
  /// From now on a chunk counts as idle for long when nobody has used it since the last but one mark_idle():
  /// to be called about once a second.
  void mark_idle() { idle_marks_ = {idle_marks_[1], idle_clock_}; }
  /// Gives kTrimBytes of them back, the longest idle first. True: there are more.
  bool trim_idle();

  /// Called before an idle chunk goes back to the system, once per block of it: the owner must drop its views
  /// of that memory now, and must not call alloc(). The destructor does not call it.
  void on_retire(std::function<void(BlockId)> callback) { on_retire_ = std::move(callback); }
  ArenaCounters counters() const;

  /// The device goes, and all that is registered on it. Leased blocks keep their memory until they are
  /// released; alloc() has no room any more.
  void leave_device();

 private:
  struct Chunk {
    std::unique_ptr<fabric::HostMemory> memory;
    std::unique_ptr<fabric::MemoryRegion> region;  // after the memory: goes first
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    std::size_t block_bytes = 0;
    std::size_t size_class = 0;
    std::vector<std::uint32_t> slots;  // of its blocks, by position
    std::uint32_t leased = 0;
    std::uint64_t idle_since = 0;  // idle_clock_ when `leased` fell to 0
  };

  struct Owner {
    std::array<std::size_t, kUses> held{};  // bytes leased, by use
    std::size_t own_max = 0;                // 0: none
    bool present = false;
    std::uint64_t refused_at = 0;  // `refused_for_peers` when it was last counted for this owner
  };

  struct Slot {
    Block block;
    Chunk* chunk = nullptr;  // null: the number is free
    std::uint32_t references = 0;
    std::uint32_t generation = 0;
    std::uint32_t next_free = 0;  // in the free list of its class; 0 ends it
    Use use = Use::application;   // of this lease
    OwnerId owner = kNobody;      // of this lease
    bool warm = false;            // has been leased before
  };

  // 4 KiB to 1 MiB by powers of two, then four steps per power of two up to 2^43.
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

  fabric::Device* device_;  ///< null: it has gone
  ArenaOptions options_;
  std::function<void(BlockId)> on_retire_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // by address
  std::deque<Slot> slots_;                      // [0] is never used; a deque, since at() gives out references
  std::deque<std::uint32_t> spare_slots_;       // oldest first, so that a generation lasts
  std::array<std::uint32_t, kClasses> free_{};  // last freed slot of each class, 0: none
  std::array<std::size_t, kUses> held_{};       // bytes leased, by use
  std::vector<Owner> owners_;                   // [kNobody] is never present
  std::size_t owners_present_ = 0;
  std::size_t idle_bytes_ = 0;  // of chunks without a lease
  std::uint64_t idle_clock_ = 0;
  std::array<std::uint64_t, 2> idle_marks_{};  // idle_clock_ at the last two calls of mark_idle()
  std::string refusal_;
  ArenaCounters counters_;
};

}  // namespace rdma_rpc::memory

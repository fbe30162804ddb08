// Implements the registered arena: memory that the fabric can access, divided into blocks. The fabric places
// bulk payloads in the arena (those that a server READs, and the responses in a client's reply buffers), and
// applications allocate blocks from it. The block that was freed last is allocated first, while it is still
// in the CPU cache, because fresh pages cost more than the copy into them. This code is called by the session
// and, for leases, by the binding, on the context's thread only.
//
// Small classes (4 KiB to 1 MiB) are carved from shared chunks that stay allocated. A larger block has its
// own chunk, which is returned to the system when another class needs the budget. A block number is stable
// while its chunk exists, and is positive as int32. Numbers contain a generation, so that the number of a
// block whose chunk was released never becomes valid again.
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

/// Identifies the session to which a block is charged. kNobody stands for no session.
using OwnerId = std::uint32_t;
inline constexpr OwnerId kNobody = 0;

/// The use of a block, in the order of a call's steps. Blocks of earlier steps are released when later steps
/// complete, so earlier steps must leave room for later ones. Otherwise calls could wait for each other's
/// memory for ever, especially when client and server share an arena.
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
/// Number of eighths of the arena that the blocks of a use may occupy, together with those of earlier uses. A
/// lone request, or the lone message of a later step, may be larger.
inline constexpr std::array<std::size_t, kUses> kShareOfUse = {1, 2, 4, 6, 7, 8, 8};

/// Messages that are read ahead may use this fraction (1/n) of the memory for an owner's requests.
inline constexpr std::size_t kAheadOfRequests =
    kShareOfUse[static_cast<std::size_t>(Use::fetch)] / kShareOfUse[static_cast<std::size_t>(Use::ahead)];

/// An owner that has blocks of a use gets another one only within a limit: the owner's blocks of this use and
/// earlier uses may then have at most this multiple of the bytes that remain free. A greedy owner therefore
/// leaves a quarter to the others.
inline constexpr std::size_t kOwnerShare = 3;
/// This fraction (1/n) of a use's memory is a reserve that is divided equally among all owners. An owner can
/// use only its own part of the reserve, up to its share. Therefore each owner has a part of the arena that
/// other owners cannot take. The reserve is half of the memory that later steps of calls have for themselves
/// (kShareOfUse), so later steps never wait because of the reserve of inactive owners.
inline constexpr std::size_t kReservedShare = 16;

/// Chunks that have been idle for long are returned to the system, except for this amount of the most
/// recently used memory, so that occasional large calls find warm pages.
inline constexpr std::size_t kKeptIdleBytes = std::size_t{8} << 20;
/// Limit of bytes that are returned to the system at a time, because each page takes time: 2 to 4 ms in total
/// on a slow virtual machine.
inline constexpr std::size_t kTrimBytes = std::size_t{32} << 20;

struct ArenaOptions {
  std::size_t budget_bytes = std::size_t{256} << 20;  ///< limit of the sum of all chunks
  std::size_t chunk_bytes = std::size_t{4} << 20;     ///< size of chunks for the small classes
  std::uint32_t remote_access = 0;     ///< rights of the peer when the device has no windows; 0 for none
  std::string_view purpose = "arena";  ///< name of the memory in the device
};

struct ArenaCounters {
  std::uint64_t bytes_reserved = 0;  ///< memory of all chunks, in bytes
  std::uint64_t bytes_leased = 0;    ///< memory of blocks that have a reference, in bytes
  std::uint64_t blocks_leased = 0;
  std::uint64_t releases = 0;  ///< number of last references released, for blocks that had been used
  std::uint64_t allocs = 0, reused = 0, refused = 0, trimmed_chunks = 0;
  /// The part of `refused` that asked for memory reserved for peers (Use::fetch, Use::response).
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

  /// Returns a block with one reference. Returns kNoBlock when the budget, the system, or the share of this
  /// use or owner has no room. The caller then waits for a release, or refuses the call.
  BlockId alloc(std::size_t bytes, Use use = Use::application, OwnerId owner = kNobody);
  /// Adds an owner that gets a share; a single owner gets everything. `own_max` limits the bytes of the
  /// requests that the owner reads and, separately, the bytes of the responses that it sends; 0 for no limit.
  /// A single response may be larger than the limit.
  OwnerId add_owner(std::size_t own_max = 0);
  /// Removes an owner that will not allocate again. The blocks of the owner stay charged to it until they are
  /// released.
  void remove_owner(OwnerId owner);
  /// Returns true when this owner's share does not allow a block of `bytes` bytes. Other owners may still get
  /// one.
  bool beyond_share(std::size_t bytes, Use use, OwnerId owner) const;
  /// Returns true when the owner's own limit (add_owner()) does not allow a block of `bytes` bytes. Messages
  /// read ahead may use a part of that limit, as in the arena.
  bool beyond_own_limit(std::size_t bytes, Use use, OwnerId owner) const;
  /// Returns true when other owners have been refused memory reserved for peers since
  /// ArenaCounters::refused_for_peers had the value `since`.
  bool refused_others(OwnerId owner, std::uint64_t since) const;
  void retain(BlockId id);
  /// Drops a reference; the last one frees the block for reuse. A call with an invalid number is only
  /// counted.
  void release(BlockId id);
  /// Releases a block that was never used. Such a release does not count in ArenaCounters::releases, because
  /// the memory was already available to waiting callers.
  void release_unused(BlockId id);
  /// Returns the block while live(id), otherwise an empty block. The reference stays valid until the block's
  /// chunk is retired.
  const Block& at(BlockId id) const;
  /// Returns the block even when it is free. Returns null for a number that no block has.
  const Block* known(BlockId id) const;
  bool live(BlockId id) const;  ///< whether the block has a reference; false for an unknown number
  /// Returns the leased block that contains [data, data + bytes), or kNoBlock.
  BlockId find(const void* data, std::size_t bytes) const;
  /// Keeps the pages of this block, leased or not, mapped until the result is released, even if its chunk or
  /// the arena goes first. Returns null for a number that no block has.
  std::shared_ptr<const void> keep_mapped(BlockId id);
  /// Returns the reason why the system refused memory for the last alloc(); "" when the system did not
  /// refuse, or when our own limits did.
  const std::string& refusal() const { return refusal_; }
  /// Returns the size of the largest block that could ever be allocated.
  std::size_t largest() const { return options_.budget_bytes; }

  /// Returns true when more memory is idle than is kept for later calls.
  bool trimmable() const { return idle_bytes_ > kKeptIdleBytes; }
  /// Must be called about once a second. A chunk counts as idle for long when it was not used since the call
  /// before the last.
  void mark_idle() { idle_marks_ = {idle_marks_[1], idle_clock_}; }
  /// Returns up to kTrimBytes of such chunks to the system, beginning with the one that has been idle for
  /// longest. Returns true when more are left.
  bool trim_idle();

  /// Sets a function that is called before an idle chunk is returned to the system, once for each of its
  /// blocks. The owner must then drop its views of that memory, and must not call alloc(). The destructor
  /// does not call the function.
  void on_retire(std::function<void(BlockId)> callback) { on_retire_ = std::move(callback); }
  ArenaCounters counters() const;

  /// Prepares for the destruction of the device with everything registered on it. Leased blocks keep their
  /// memory until they are released. From now on alloc() returns kNoBlock.
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
    std::array<std::size_t, kUses> held{};  // leased bytes, by use
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
    Use use = Use::application;   // use of the current lease
    OwnerId owner = kNobody;      // owner of the current lease
    bool warm = false;            // the block has been leased before
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
  std::array<std::size_t, kUses> held_{};       // leased bytes, by use
  std::vector<Owner> owners_;                   // [kNobody] is never present
  std::size_t owners_present_ = 0;
  std::size_t idle_bytes_ = 0;  // memory of chunks without a lease
  std::uint64_t idle_clock_ = 0;
  std::array<std::uint64_t, 2> idle_marks_{};  // values of idle_clock_ at the last two calls of mark_idle()
  std::string refusal_;
  ArenaCounters counters_;
};

}  // namespace rdma_rpc::memory

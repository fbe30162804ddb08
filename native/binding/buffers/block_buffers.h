// Keeps the ArrayBuffers of arena blocks. A block has at most one ArrayBuffer of its memory, made when JS
// first asks for it. While an application holds a lease, the reference to the buffer is weak: when the last
// view has been collected, the lease counts as returned. While the runtime holds a block by its number, as it
// does for the messages that it encodes, the reference is strong, because the number is used longer than the
// views. If the collection of the views returned such a block, the runtime would later release the block a
// second time, while the next holder uses it. NativeContext owns this object and uses it on the JS thread.
//
// When the application returns a lease, all views of its ArrayBuffer become empty, so that no view ever shows
// the next contents of the block. The memory moves to a new ArrayBuffer (ArrayBuffer.prototype.transfer),
// which the next lease of the block gets. This takes 0.7 us; detaching one buffer and making another takes 2
// to 3 us. Buffers that only the runtime has seen are kept as they are.
//
// An application may transfer such a buffer (`transfer()`, a byte stream). The buffer's memory then belongs
// to another ArrayBuffer, which is not known here. Such a buffer is called a stray. The memory of a stray is
// reused or unmapped only after the JS engine has reported that the memory is free.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "binding/buffers/counted_memory.h"
#include "binding/buffers/young_buffers.h"
#include "memory/arena.h"

namespace rdma_rpc::binding {

/// The finalizer that reports that a buffer was collected. The finalizer of the memory also covers buffers
/// that were transferred to another thread. Deno does not call the finalizer of the memory, so the finalizer
/// of the object is used there.
enum class Collected { memory, object };

/// The way in which JS holds a block: by its ArrayBuffer, which an application may drop without notice, or by
/// its number, which the runtime always releases.
enum class HeldBy { buffer, number };

class BlockBuffers {
 public:
  BlockBuffers(Napi::Env env, memory::Arena& arena, Collected collected);
  ~BlockBuffers();

  /// Counts one more reference that JS has to the block, from allocBlock() or an event. The first reference
  /// decides how JS holds the block.
  void lent(memory::BlockId block, HeldBy held_by) {
    Entry& lent = entry(block);
    if (lent.js_references++ == 0) lent.by_number = held_by == HeldBy::number;
  }
  /// Releases a reference of JS whose buffer the application has not seen; the next lease gets the same
  /// buffer. Calls for blocks that JS does not hold are ignored.
  void release(memory::BlockId block) { release(block, &memory::Arena::release); }
  /// Releases a reference to a block that was never used, see Arena::release_unused().
  void discard(memory::BlockId block) { release(block, &memory::Arena::release_unused); }
  /// Releases a reference like release(), and detaches the buffer, so that no view shows the memory later.
  void take(memory::BlockId block);
  /// Returns the ArrayBuffer of a block that JS holds, or an empty value when JS does not hold the block.
  Napi::Value buffer(memory::BlockId block);
  /// Detaches the buffer of a block whose memory is returned to the system.
  void retire(memory::BlockId block);
  /// Detaches all buffers when the context closes. When `thread_ends` is true, another thread may still use
  /// strays.
  void close(bool thread_ends = false);
  /// Releases all buffers without detaching them. Allowed at the end of the thread, when no JS code can read
  /// them.
  void forget();
  /// Returns true when a collection could free memory, because JS holds buffers that the application may have
  /// dropped.
  bool collectable() const;
  /// Sets a function that is called after a collected buffer has released its block.
  void on_collected(std::function<void()> callback) { on_collected_ = std::move(callback); }
  /// Decides when V8 collects buffers that the application may have dropped.
  YoungBuffers& young() { return young_; }
  /// Looks about every 500 ms whether the program is idle. When it is idle, V8 stops counting memory that is
  /// not lent (CountedMemory).
  void rest() { count(counted_.rest()); }

 private:
  /// The data of one buffer. The buffer's finalizer deletes the link, possibly long after this object is
  /// destroyed.
  struct Link {
    std::weak_ptr<BlockBuffers*> owner;
    memory::BlockId block;
    std::size_t counted = 0;            ///< bytes that CountedMemory counts for this buffer
    std::uint32_t references = 0;       ///< for a stray: the number of references to its block
    std::shared_ptr<const void> pages;  ///< for a stray whose block was freed: keeps its memory mapped
  };
  struct Entry {
    std::uint32_t js_references = 0;
    napi_ref buffer = nullptr;
    Link* link = nullptr;  ///< link of `buffer`
    bool weak = false;
    bool by_number = false;
  };

  void release(memory::BlockId block, void (memory::Arena::*release_block)(memory::BlockId));
  Entry* unreference(memory::BlockId block, napi_value* value);
  Entry& entry(memory::BlockId block) { return entries_[block]; }
  Napi::Value make(memory::BlockId block, Entry& entry);
  napi_value value_of(const Entry& entry) const;
  bool is_transferred(napi_value value) const;
  bool transferred(const Entry& entry) const;
  bool outlives_thread(const Entry& entry) const;
  napi_value move(napi_value buffer) const;
  Link* make_stray(Entry& entry);
  void keep_pages(Link& stray);
  void keep_for_ever(Link& stray);
  void collected(Link& link);
  void drop(Entry& entry);
  void renew(memory::BlockId block, Entry& entry, napi_value value);
  void make_weak(memory::BlockId block, Entry& entry);
  void give_back(memory::BlockId block, Entry& entry);
  void forget_weak(memory::BlockId block, Entry& entry);
  void count(std::int64_t change);
  void uncount(Link& link) { count(counted_.freed(std::exchange(link.counted, 0))); }
  static void finalize(napi_env env, void* data, void* hint);

  Napi::Env env_;
  memory::Arena& arena_;
  const Collected finalizer_of_;
  std::shared_ptr<BlockBuffers*> self_;
  std::unordered_map<memory::BlockId, Entry> entries_;
  std::unordered_set<Link*> strays_;
  std::function<void()> on_collected_;
  Napi::FunctionReference transfer_;  ///< ArrayBuffer.prototype.transfer; empty before Node 22
  YoungBuffers young_;
  CountedMemory counted_;
};

}  // namespace rdma_rpc::binding

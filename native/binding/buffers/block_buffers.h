// The ArrayBuffers of arena blocks. A block has at most one that reads its memory, made when JS first asks
// for it. While an application holds a lease the reference here is weak: when the last view has been collected
// the lease counts as returned. While the runtime holds a block by its number, as it does for the messages that
// it encodes, the reference is strong: the number outlives the views, and a block that came back by itself would
// be given back once more, then from under its next holder. Owned by NativeContext, on the JS thread.
//
// A lease of the application that is given back takes its ArrayBuffer along: all views of it become empty, so
// that none of them ever shows what the block holds next. Its memory moves to a new ArrayBuffer
// (ArrayBuffer.prototype.transfer), which the next lease of the block gets: 0.7 us, where detaching one and
// making another takes 2 to 3. Buffers that only the runtime has seen are kept as they are.
//
// An application may transfer such a buffer (`transfer()`, a byte stream): its memory then belongs to another
// ArrayBuffer that nobody here knows. Such a buffer is a stray. What it refers to is neither given to anybody
// else nor unmapped before the engine says that the memory is free.
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

/// Who tells that a buffer was collected: its memory, which also knows of buffers that were transferred to
/// another thread, or, since Deno tells nothing of that, the object.
enum class Collected { memory, object };

/// How JS holds a block: by its ArrayBuffer, which an application may drop without a word, or by its number,
/// which the runtime always gives back.
enum class HeldBy { buffer, number };

class BlockBuffers {
 public:
  BlockBuffers(Napi::Env env, memory::Arena& arena, Collected collected);
  ~BlockBuffers();

  /// JS got one more reference to the block: by allocBlock, or in an event. The first one says how it is held.
  void lent(memory::BlockId block, HeldBy held_by) {
    Entry& lent = entry(block);
    if (lent.js_references++ == 0) lent.by_number = held_by == HeldBy::number;
  }
  /// JS gives one back whose buffer no application has seen: the next one gets the same buffer. Numbers that
  /// it does not hold are ignored.
  void release(memory::BlockId block) { release(block, &memory::Arena::release); }
  /// The same for a block that nothing has come of, see Arena::release_unused().
  void discard(memory::BlockId block) { release(block, &memory::Arena::release_unused); }
  /// Gives one back like release(), and empties the buffer: no view of it shows what becomes of the memory.
  void take(memory::BlockId block);
  /// The memory of a block that JS holds; empty value otherwise.
  Napi::Value buffer(memory::BlockId block);
  /// Detaches the buffer: its memory goes back to the system.
  void retire(memory::BlockId block);
  /// The context closes: detaches all. `thread_ends`: strays may live on in another thread.
  void close(bool thread_ends = false);
  /// The thread ends: lets go of all as they are, since nobody can look into them any more.
  void forget();
  /// There is memory that would come back if its buffers were collected, as far as nobody looks at them.
  bool collectable() const;
  /// Called after a collected buffer has released its block.
  void on_collected(std::function<void()> callback) { on_collected_ = std::move(callback); }
  /// JS holds buffers that it may have forgotten, and how many bytes that is.
  YoungBuffers& young() { return young_; }
  /// Called now and then: V8 counts no memory of an idle program that is not lent (CountedMemory).
  void rest() { count(counted_.rest()); }

 private:
  /// Of one buffer, for its finalizer, which may run long after this object is gone and deletes it.
  struct Link {
    std::weak_ptr<BlockBuffers*> owner;
    memory::BlockId block;
    std::size_t counted = 0;            ///< bytes of it that CountedMemory knows of
    std::uint32_t references = 0;       ///< of a stray: to its block
    std::shared_ptr<const void> pages;  ///< of a stray whose block is gone
  };
  struct Entry {
    std::uint32_t js_references = 0;
    napi_ref buffer = nullptr;
    Link* link = nullptr;  ///< of the buffer, while its references are JS's
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
  Link* make_stray(Entry& entry);
  void keep_pages(Link& stray);
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
  const Collected told_;
  std::shared_ptr<BlockBuffers*> self_;
  std::unordered_map<memory::BlockId, Entry> entries_;
  std::unordered_set<Link*> strays_;
  std::function<void()> on_collected_;
  Napi::FunctionReference transfer_;  ///< ArrayBuffer.prototype.transfer; empty before Node 22
  YoungBuffers young_;
  CountedMemory counted_;
};

}  // namespace rdma_rpc::binding

// See block_buffers.h.
#include "binding/buffers/block_buffers.h"

#include <algorithm>
#include <utility>

#include "binding/thread_end.h"

namespace rdma_rpc::binding {

BlockBuffers::BlockBuffers(Napi::Env env, memory::Arena& arena, Collected collected)
    : env_(env),
      arena_(arena),
      finalizer_of_(collected),
      self_(std::make_shared<BlockBuffers*>(this)),
      young_(arena.largest()),
      counted_(arena.largest()) {
  // Where only the finalizer of the object exists, the end of the old ArrayBuffer would be mistaken for the
  // end of the memory.
  if (finalizer_of_ == Collected::object) return;
  const Napi::Value transfer =
      env.Global().Get("ArrayBuffer").As<Napi::Object>().Get("prototype").As<Napi::Object>().Get("transfer");
  if (transfer.IsFunction()) transfer_ = Napi::Persistent(transfer.As<Napi::Function>());
}

BlockBuffers::~BlockBuffers() { close(); }

Napi::Value BlockBuffers::buffer(memory::BlockId block) {
  const auto found = entries_.find(block);
  if (found == entries_.end() || found->second.js_references == 0) return Napi::Value();
  Entry& entry = found->second;
  if (entry.buffer == nullptr) return make(block, entry);
  napi_value value = value_of(entry);
  if (is_transferred(value)) {
    // The block gets an additional reference, which is released when the transferred memory is freed.
    arena_.retain(block);
    make_stray(entry)->references = 1;
    return make(block, entry);
  }
  if (value == nullptr) {
    // The buffer has been collected, but its finalizer has not run yet. The finalizer must not release the
    // references that belong to the new buffer.
    forget_weak(block, entry);
    napi_delete_reference(env_, std::exchange(entry.buffer, nullptr));
    return make(block, entry);
  }
  if (!entry.weak && !entry.by_number) make_weak(block, entry);
  return Napi::Value(env_, value);
}

/// From now on JS has the buffer and may drop it without notice.
void BlockBuffers::make_weak(memory::BlockId block, Entry& entry) {
  napi_reference_unref(env_, entry.buffer, nullptr);
  entry.weak = true;
  young_.lent(arena_.at(block).capacity);
}

/// Counts a buffer that JS no longer has although its lease has not been returned.
void BlockBuffers::forget_weak(memory::BlockId block, Entry& entry) {
  const memory::Block* memory = arena_.known(block);
  if (std::exchange(entry.weak, false) && memory != nullptr) young_.collected(memory->capacity);
}

Napi::Value BlockBuffers::make(memory::BlockId block, Entry& entry) {
  const memory::Block& memory = arena_.at(block);
  const bool of_memory = finalizer_of_ == Collected::memory;
  // Where only the finalizer of the object exists, V8 gives no sign when it stops counting the memory. The
  // memory is therefore not counted here.
  auto link = std::make_unique<Link>(Link{self_, block, of_memory ? memory.capacity : 0, 0, nullptr});
  napi_value value = nullptr;
  if (napi_create_external_arraybuffer(env_, memory.data, memory.capacity,
                                       of_memory ? &BlockBuffers::finalize : nullptr, link.get(),
                                       &value) != napi_ok) {
    return Napi::Value();
  }
  if (!of_memory) napi_add_finalizer(env_, value, nullptr, &BlockBuffers::finalize, link.get(), nullptr);
  // At the end of the thread Node detaches only the buffer that was created here. The application gets
  // another buffer of the same memory, so that collected() can tell whether the application has transferred
  // it.
  if (napi_value moved = move(value); moved != nullptr) value = moved;
  entry.weak = !entry.by_number;
  napi_create_reference(env_, value, entry.weak ? 0 : 1, &entry.buffer);
  if (link->counted != 0) count(counted_.made(link->counted));
  entry.link = link.release();
  if (entry.weak) young_.lent(memory.capacity);
  return Napi::Value(env_, value);
}

void BlockBuffers::release(memory::BlockId block, void (memory::Arena::*release_block)(memory::BlockId)) {
  const Napi::HandleScope scope(env_);
  napi_value value = nullptr;
  Entry* entry = unreference(block, &value);
  if (entry == nullptr) return;
  if (entry->js_references == 0 && value != nullptr && entry->weak) {
    napi_reference_ref(env_, entry->buffer, nullptr);
    give_back(block, *entry);
  }
  (arena_.*release_block)(block);
}

void BlockBuffers::take(memory::BlockId block) {
  const Napi::HandleScope scope(env_);
  napi_value value = nullptr;
  Entry* entry = unreference(block, &value);
  if (entry == nullptr) return;
  if (value != nullptr) renew(block, *entry, value);
  arena_.release(block);
}

/// Empties the views that the application has. The next lease of the block gets another buffer of the same
/// memory.
void BlockBuffers::renew(memory::BlockId block, Entry& entry, napi_value value) {
  if (entry.weak) give_back(block, entry);
  const napi_value moved = move(value);
  if (moved == nullptr) {
    drop(entry);
    return;
  }
  napi_delete_reference(env_, entry.buffer);
  napi_create_reference(env_, moved, 1, &entry.buffer);
}

/// Moves the memory of a buffer to a new one and detaches the old one. Returns null when the memory cannot be
/// moved.
napi_value BlockBuffers::move(napi_value buffer) const {
  napi_value moved = nullptr;
  if (transfer_.IsEmpty()) return nullptr;
  if (napi_call_function(env_, buffer, transfer_.Value(), 0, nullptr, &moved) == napi_ok) return moved;
  napi_value error = nullptr;  // the stack may be exhausted, or the thread may be ending
  napi_get_and_clear_last_exception(env_, &error);
  return nullptr;
}

/// Counts a returned buffer: JS no longer has it.
void BlockBuffers::give_back(memory::BlockId block, Entry& entry) {
  entry.weak = false;
  young_.returned(arena_.at(block).capacity);
}

/// Takes one of JS's references to the block. Returns null when JS has no reference, or when the application
/// has transferred the buffer. In the second case, the reference now belongs to the stray. Sets `value` to
/// the block's buffer, or to null when it has none. Needs a handle scope.
BlockBuffers::Entry* BlockBuffers::unreference(memory::BlockId block, napi_value* value) {
  const auto found = entries_.find(block);
  if (found == entries_.end() || found->second.js_references == 0) return nullptr;
  Entry& entry = found->second;
  --entry.js_references;
  *value = value_of(entry);
  if (*value == nullptr && entry.buffer != nullptr && entry.js_references == 0) {
    // The buffer was collected, but its finalizer has not run yet. When the finalizer runs, the block may
    // have another holder, whose reference it must not release.
    forget_weak(block, entry);
    napi_delete_reference(env_, std::exchange(entry.buffer, nullptr));
    entry.link = nullptr;
  }
  if (!is_transferred(*value)) return &entry;
  make_stray(entry)->references = 1;
  return nullptr;
}

/// Returns the buffer. Returns null when the block has no buffer, or when its buffer has been collected.
/// Needs a handle scope.
napi_value BlockBuffers::value_of(const Entry& entry) const {
  napi_value value = nullptr;
  if (entry.buffer != nullptr) napi_get_reference_value(env_, entry.buffer, &value);
  return value;
}

/// Returns whether the application has transferred the buffer. (This class drops its own reference when it
/// detaches a buffer.)
bool BlockBuffers::is_transferred(napi_value value) const {
  bool detached = false;
  return value != nullptr && napi_is_detached_arraybuffer(env_, value, &detached) == napi_ok && detached;
}

/// Finalizers call this function, which returns whether another thread may read the memory, which is the case
/// when the thread is ending and the buffer is gone or was transferred. (The end of a thread runs all
/// finalizers, even those of memory that another thread has received.)
bool BlockBuffers::outlives_thread(const Entry& entry) const {
  // Without transfer(), all buffers are already detached (see make()), and none can be sent to another
  // thread.
  if (transfer_.IsEmpty()) return false;
  const Napi::HandleScope scope(env_);
  if (!thread_ends(env_)) return false;
  const napi_value value = value_of(entry);
  return value == nullptr || is_transferred(value);
}

bool BlockBuffers::transferred(const Entry& entry) const {
  if (entry.buffer == nullptr) return false;
  const Napi::HandleScope scope(env_);
  return is_transferred(value_of(entry));
}

/// Turns the block's buffer into a stray. The block's next buffer will be a new one. The caller sets how many
/// references the stray has.
BlockBuffers::Link* BlockBuffers::make_stray(Entry& entry) {
  napi_delete_reference(env_, std::exchange(entry.buffer, nullptr));
  Link* link = std::exchange(entry.link, nullptr);
  forget_weak(link->block, entry);
  strays_.insert(link);
  return link;
}

/// Keeps the memory of the stray mapped when its block is freed.
void BlockBuffers::keep_pages(Link& stray) { stray.pages = arena_.keep_mapped(stray.block); }

/// Keeps the memory mapped for the life of the process, because no event tells when the other thread has
/// finished with it.
void BlockBuffers::keep_for_ever(Link& stray) {
  if (stray.pages == nullptr) keep_pages(stray);
  new std::shared_ptr<const void>(stray.pages);
}

void BlockBuffers::finalize(napi_env, void*, void* hint) {
  const std::unique_ptr<Link> link(static_cast<Link*>(hint));
  if (const auto owner = link->owner.lock()) (*owner)->collected(*link);
}

void BlockBuffers::collected(Link& link) {
  uncount(link);
  if (strays_.erase(&link) != 0) {
    // Where only the finalizer of the object exists, the buffer to which the memory was transferred may still
    // use the memory.
    if (finalizer_of_ == Collected::object) return;
    if (const Napi::HandleScope scope(env_); thread_ends(env_)) return keep_for_ever(link);
    for (std::uint32_t i = 0; i < link.references; ++i) arena_.release(link.block);
    if (on_collected_) on_collected_();
    return;
  }
  const auto found = entries_.find(link.block);
  if (found == entries_.end() || found->second.link != &link) return;
  Entry& entry = found->second;
  if (entry.js_references != 0 && outlives_thread(entry)) {
    keep_for_ever(*make_stray(entry));
    strays_.erase(&link);
    entries_.erase(found);
    return;
  }
  entry.link = nullptr;
  if (entry.buffer != nullptr) napi_delete_reference(env_, entry.buffer);
  forget_weak(link.block, entry);
  const std::uint32_t references = entry.js_references;
  const memory::BlockId block = link.block;
  entries_.erase(found);
  for (std::uint32_t i = 0; i < references; ++i) arena_.release(block);
  if (references != 0 && on_collected_) on_collected_();
}

bool BlockBuffers::collectable() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& each) {
    return each.second.js_references != 0 && each.second.weak && each.second.buffer != nullptr;
  });
}

/// Detaches the buffer, so that the finalizer of the buffer releases nothing.
void BlockBuffers::drop(Entry& entry) {
  Link* link = std::exchange(entry.link, nullptr);
  if (entry.buffer == nullptr) return;
  const Napi::HandleScope scope(env_);
  if (const napi_value value = value_of(entry); value != nullptr) {
    napi_detach_arraybuffer(env_, value);
    uncount(*link);
  }
  napi_delete_reference(env_, std::exchange(entry.buffer, nullptr));
}

/// Changes the amount of external memory that V8 counts by this number of bytes.
void BlockBuffers::count(std::int64_t change) {
  std::int64_t now = 0;
  if (change != 0) napi_adjust_external_memory(env_, change, &now);
}

void BlockBuffers::retire(memory::BlockId block) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) return;
  if (transferred(found->second)) {  // the application has kept the memory, so it stays mapped
    keep_pages(*make_stray(found->second));
  } else {
    drop(found->second);
  }
  entries_.erase(found);
}

void BlockBuffers::forget() {
  for (auto& [block, entry] : entries_) {
    if (entry.buffer != nullptr) napi_delete_reference(env_, std::exchange(entry.buffer, nullptr));
    entry.link = nullptr;
  }
  close(true);
}

void BlockBuffers::close(bool thread_ends) {
  self_.reset();
  for (auto& [block, entry] : entries_) {
    if (transferred(entry)) {
      make_stray(entry);
    } else {
      drop(entry);
    }
  }
  entries_.clear();
  for (Link* stray : strays_) {
    // The end of a thread runs all finalizers, although another thread may still use the memory.
    if (thread_ends || finalizer_of_ == Collected::object) {
      keep_for_ever(*stray);
    } else if (stray->pages == nullptr) {
      keep_pages(*stray);
    }
  }
  strays_.clear();
  // V8's count does not matter when the environment ends.
  if (const std::int64_t change = counted_.close(); !thread_ends) count(change);
}

}  // namespace rdma_rpc::binding

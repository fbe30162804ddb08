// See block_buffers.h.
#include "binding/block_buffers.h"

#include <algorithm>
#include <utility>

namespace rdma_rpc::binding {

BlockBuffers::BlockBuffers(Napi::Env env, memory::Arena& arena, Collected collected)
    : env_(env), arena_(arena), told_(collected), self_(std::make_shared<BlockBuffers*>(this)) {}

BlockBuffers::~BlockBuffers() { close(); }

Napi::Value BlockBuffers::buffer(memory::BlockId block) {
  const auto found = entries_.find(block);
  if (found == entries_.end() || found->second.js_references == 0) return Napi::Value();
  Entry& entry = found->second;
  napi_value value = nullptr;
  if (entry.buffer != nullptr) {
    napi_get_reference_value(env_, entry.buffer, &value);
    if (value != nullptr) {
      if (!entry.weak) napi_reference_unref(env_, entry.buffer, nullptr);
      entry.weak = true;
      return Napi::Value(env_, value);
    }
    // Collected, and its finalizer has not run yet: that finalizer must not take the references that stand
    // for the new buffer.
    napi_delete_reference(env_, std::exchange(entry.buffer, nullptr));
  }
  const memory::Block& memory = arena_.at(block);
  auto* link = new Link{self_, block, ++serial_};
  const bool of_memory = told_ == Collected::memory;
  if (napi_create_external_arraybuffer(env_, memory.data, memory.capacity,
                                       of_memory ? &BlockBuffers::finalize : nullptr, link,
                                       &value) != napi_ok) {
    delete link;
    return Napi::Value();
  }
  if (!of_memory) napi_add_finalizer(env_, value, nullptr, &BlockBuffers::finalize, link, nullptr);
  napi_create_reference(env_, value, 0, &entry.buffer);
  entry.serial = serial_;
  entry.weak = true;
  return Napi::Value(env_, value);
}

void BlockBuffers::release(memory::BlockId block) {
  const auto found = entries_.find(block);
  if (found == entries_.end() || found->second.js_references == 0) return;
  Entry& entry = found->second;
  --entry.js_references;
  arena_.release(block);
  if (entry.js_references == 0 && entry.buffer != nullptr && entry.weak) {
    napi_value value = nullptr;
    napi_get_reference_value(env_, entry.buffer, &value);
    if (value == nullptr) return;
    napi_reference_ref(env_, entry.buffer, nullptr);
    entry.weak = false;
  }
}

void BlockBuffers::finalize(napi_env, void*, void* hint) {
  const std::unique_ptr<Link> link(static_cast<Link*>(hint));
  if (const auto owner = link->owner.lock()) (*owner)->collected(*link);
}

void BlockBuffers::take(memory::BlockId block) {
  const auto found = entries_.find(block);
  if (found == entries_.end() || found->second.js_references == 0) return;
  detach(found->second);
  found->second.serial = 0;  // its finalizer has nothing to give back
  --found->second.js_references;
  arena_.release(block);
}

void BlockBuffers::collected(const Link& link) {
  const auto found = entries_.find(link.block);
  if (found == entries_.end() || found->second.serial != link.serial) return;
  Entry& entry = found->second;
  napi_value value = nullptr;
  if (entry.buffer != nullptr) napi_get_reference_value(env_, entry.buffer, &value);
  if (value != nullptr) return;  // another buffer has taken its place
  if (entry.buffer != nullptr) napi_delete_reference(env_, entry.buffer);
  const std::uint32_t references = entry.js_references;
  entries_.erase(found);
  for (std::uint32_t i = 0; i < references; ++i) arena_.release(link.block);
  if (references != 0 && on_collected_) on_collected_();
}

bool BlockBuffers::collectable() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& each) {
    return each.second.js_references != 0 && each.second.weak && each.second.buffer != nullptr;
  });
}

void BlockBuffers::detach(Entry& entry) {
  if (entry.buffer == nullptr) return;
  const Napi::HandleScope scope(env_);
  napi_value value = nullptr;
  napi_get_reference_value(env_, entry.buffer, &value);
  if (value != nullptr) napi_detach_arraybuffer(env_, value);
  napi_delete_reference(env_, std::exchange(entry.buffer, nullptr));
}

void BlockBuffers::retire(memory::BlockId block) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) return;
  detach(found->second);
  entries_.erase(found);
}

void BlockBuffers::forget() {
  for (auto& [block, entry] : entries_) {
    if (entry.buffer != nullptr) napi_delete_reference(env_, std::exchange(entry.buffer, nullptr));
  }
  close();
}

void BlockBuffers::close() {
  self_.reset();
  for (auto& [block, entry] : entries_) detach(entry);
  entries_.clear();
}

}  // namespace rdma_rpc::binding

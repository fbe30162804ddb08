// See owned_memory.h.
#include "binding/verbs/owned_memory.h"

#include <utility>

namespace rdma_rpc::binding {
namespace {

/// Returns the blocks of this thread, by their addresses.
std::map<const std::byte*, std::weak_ptr<OwnedBlock>>& blocks_of_thread() {
  thread_local std::map<const std::byte*, std::weak_ptr<OwnedBlock>> blocks;
  return blocks;
}

/// One ArrayBuffer of a block. The finalizers of the ArrayBuffer and of its two sentinels share this object.
struct Shown {
  std::shared_ptr<OwnedBlock> block;
  napi_ref buffer = nullptr;   ///< a weak reference
  napi_ref sentinels[2] = {};  ///< strong references: finalizers run only at the end of the thread
  bool looked = false;
};

bool is_attached(napi_env env, napi_ref reference) {
  const Napi::HandleScope scope(env);
  napi_value buffer = nullptr;
  bool detached = true;
  return napi_get_reference_value(env, reference, &buffer) == napi_ok && buffer != nullptr &&
         napi_is_detached_arraybuffer(env, buffer, &detached) == napi_ok && !detached;
}

std::shared_ptr<Shown> taken(void* hint) {
  const std::unique_ptr<std::shared_ptr<Shown>> owner(static_cast<std::shared_ptr<Shown>*>(hint));
  return *owner;
}

/// Keeps memory alive whose buffer was transferred, because another thread may use it. Runs when this thread
/// ends.
void before_the_end(napi_env env, void*, void* hint) {
  const auto shown = taken(hint);
  if (shown->block == nullptr || std::exchange(shown->looked, true)) return;
  if (!is_attached(env, shown->buffer)) new std::shared_ptr<const void>(shown->block->pages);
}

void finalize(napi_env env, void*, void* hint) {
  const auto shown = taken(hint);
  shown->block.reset();
  napi_delete_reference(env, shown->buffer);
  for (napi_ref sentinel : shown->sentinels) {
    if (sentinel != nullptr) napi_delete_reference(env, sentinel);
  }
}

napi_value external(napi_env env, std::byte* data, std::size_t size, napi_finalize then,
                    const std::shared_ptr<Shown>& shown) {
  auto hint = std::make_unique<std::shared_ptr<Shown>>(shown);
  napi_value buffer = nullptr;
  if (napi_create_external_arraybuffer(env, data, size, then, hint.get(), &buffer) != napi_ok) return nullptr;
  static_cast<void>(hint.release());
  return buffer;
}

/// Creates an ArrayBuffer that no code sees.
void add_sentinel(napi_env env, const std::shared_ptr<Shown>& shown, napi_ref* sentinel) {
  const napi_value buffer = external(env, shown->block->data, 1, before_the_end, shown);
  if (buffer != nullptr) napi_create_reference(env, buffer, 1, sentinel);
}

}  // namespace

OwnedBlock::OwnedBlock(std::unique_ptr<fabric::HostMemory> memory)
    : data(memory->data()), size(memory->size()), pages(memory->keep_mapped()), host(std::move(memory)) {}

OwnedBlock::~OwnedBlock() {
  auto& blocks = blocks_of_thread();
  const auto found = blocks.find(data);
  if (found != blocks.end() && found->second.expired()) blocks.erase(found);
}

std::shared_ptr<OwnedBlock> own(std::unique_ptr<fabric::HostMemory> memory) {
  auto block = std::make_shared<OwnedBlock>(std::move(memory));
  blocks_of_thread()[block->data] = block;
  return block;
}

std::shared_ptr<OwnedBlock> find_owned(const void* data, std::size_t bytes) {
  const auto* start = static_cast<const std::byte*>(data);
  const auto& blocks = blocks_of_thread();
  auto after = blocks.upper_bound(start);
  if (after == blocks.begin()) return nullptr;
  auto block = std::prev(after)->second.lock();
  if (block == nullptr) return nullptr;
  const auto offset = static_cast<std::size_t>(start - block->data);
  return offset <= block->size && bytes <= block->size - offset ? block : nullptr;
}

Napi::Value buffer_of(Napi::Env env, const std::shared_ptr<OwnedBlock>& block) {
  const auto shown = std::make_shared<Shown>(Shown{.block = block});
  // When a thread ends, engines run the finalizers either in the order in which the buffers were made, or in
  // the reverse order. In both cases one of the two sentinels comes before the buffer.
  add_sentinel(env, shown, &shown->sentinels[0]);
  const napi_value buffer = external(env, block->data, block->size, finalize, shown);
  if (buffer == nullptr) return {};
  napi_create_reference(env, buffer, 0, &shown->buffer);
  add_sentinel(env, shown, &shown->sentinels[1]);
  return {env, buffer};
}

}  // namespace rdma_rpc::binding

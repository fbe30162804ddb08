// See owned_memory.h.
#include "binding/verbs/owned_memory.h"

#include <utility>

namespace rdma_rpc::binding {
namespace {

/// The blocks of this thread by their address.
std::map<const std::byte*, std::weak_ptr<OwnedBlock>>& blocks_of_thread() {
  thread_local std::map<const std::byte*, std::weak_ptr<OwnedBlock>> blocks;
  return blocks;
}

/// What the finalizer of one ArrayBuffer finds.
struct Shown {
  napi_env env;
  std::shared_ptr<OwnedBlock> block;
  napi_ref buffer = nullptr;  ///< weak
};

/// The thread ends, and the finalizers are about to run. Memory whose buffer is not where it was may be in use
/// on another thread.
void before_the_end(void* data) {
  auto* shown = static_cast<Shown*>(data);
  const Napi::HandleScope scope(shown->env);
  napi_value buffer = nullptr;
  bool detached = false;
  const bool here = napi_get_reference_value(shown->env, shown->buffer, &buffer) == napi_ok &&
                    buffer != nullptr &&
                    napi_is_detached_arraybuffer(shown->env, buffer, &detached) == napi_ok && !detached;
  if (!here) new std::shared_ptr<const void>(shown->block->pages);
}

void finalize(napi_env env, void*, void* hint) {
  const std::unique_ptr<Shown> shown(static_cast<Shown*>(hint));
  napi_remove_env_cleanup_hook(env, before_the_end, shown.get());
  napi_delete_reference(env, shown->buffer);
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
  auto shown = std::make_unique<Shown>(Shown{env, block});
  napi_value buffer = nullptr;
  if (napi_create_external_arraybuffer(env, block->data, block->size, finalize, shown.get(), &buffer) !=
      napi_ok)
    return {};
  napi_create_reference(env, buffer, 0, &shown->buffer);
  // Added after the engine's own hook for this buffer, and so run before it: the newest hook runs first.
  napi_add_env_cleanup_hook(env, before_the_end, shown.release());
  return {env, buffer};
}

}  // namespace rdma_rpc::binding

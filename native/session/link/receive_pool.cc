// See receive_pool.h.
#include "session/link/receive_pool.h"

#include <sys/mman.h>

#include <algorithm>

#include "session/limits.h"

namespace rdma_rpc::session {

ReceivePool::Slab ReceivePool::take(std::size_t bytes, std::string* error) {
  const std::size_t slab_bytes = (bytes + fabric::kPageBytes - 1) / fabric::kPageBytes * fabric::kPageBytes;
  auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& other) {
    return other.free.empty() || other.slab_bytes == slab_bytes;  // full chunks are at the end of the list
  });
  if (chunk == chunks_.end() || chunk->free.empty()) {
    if (!add(slab_bytes, error)) return {};
    chunk = chunks_.begin();
  }
  const std::optional<std::uint32_t> index = chunk->free.take();
  if (!index) return {};
  if (chunk->free.empty()) chunks_.splice(chunks_.end(), chunks_, chunk);
  return {*this, chunk, *index};
}

bool ReceivePool::add(std::size_t slab_bytes, std::string* error) {
  // An unused chunk that was kept has slabs of another size; otherwise take() would have used it.
  chunks_.remove_if([](const Chunk& chunk) { return chunk.unused(); });
  std::uint32_t slabs = 0;
  if (device_.capabilities().max_memories != 0) {
    for (const Chunk& other : chunks_) slabs += other.slab_bytes == slab_bytes ? other.slabs : 0;
  }
  // The number of slabs of this size is doubled each time. Many sessions therefore need few registrations,
  // and few sessions do not get a large one.
  slabs = std::clamp(slabs, 1u, kSlabsPerMemory);
  auto memory = device_.alloc_memory(slab_bytes * slabs, "receive slab");
  if (memory == nullptr) {
    *error = "no memory for " + std::to_string(slab_bytes * slabs) +
             " bytes of receives (a smaller inflightMax needs less): " + device_.refusal();
    return false;
  }
  auto region = device_.reg_mr(memory->data(), memory->size(), fabric::access_local_write, error);
  if (region == nullptr) return false;
  Chunk& chunk = chunks_.emplace_front(Chunk{std::move(memory), std::move(region), slab_bytes, slabs, {}});
  for (std::uint32_t i = slabs; i-- > 0;) chunk.free.give(i);
  return true;
}

void ReceivePool::give_back(std::list<Chunk>::iterator chunk, std::uint32_t index) {
  chunk->free.give(index);
  if (chunk->unused() && !keeps(*chunk)) {
    chunks_.erase(chunk);
    return;
  }
  // Frees the pages, so that the next session finds zeroes.
  ::madvise(chunk->memory->data() + index * chunk->slab_bytes, chunk->slab_bytes, MADV_REMOVE);
  chunks_.splice(chunks_.begin(), chunks_, chunk);
}

bool ReceivePool::keeps(const Chunk& unused) const {
  return device_.capabilities().max_memories != 0 && unused.slabs == 1 &&
         std::none_of(chunks_.begin(), chunks_.end(),
                      [&](const Chunk& other) { return &other != &unused && other.unused(); });
}

}  // namespace rdma_rpc::session

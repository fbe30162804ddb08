// Allocates the memory for the receives of a context's sessions. On a device with a limited number of memory
// regions, several sessions share one region. (On shm, each region takes a descriptor, a table entry and a
// mapping at every peer.) Elsewhere each session has its own region. Shared owns the pool and Link uses it,
// on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/free_list.h"

namespace rdma_rpc::session {

class ReceivePool {
  struct Chunk {
    std::unique_ptr<fabric::HostMemory> memory;
    std::unique_ptr<fabric::MemoryRegion> region;
    std::size_t slab_bytes;
    std::uint32_t slabs;
    fabric::FreeList<> free;

    bool unused() const { return free.size() == slabs; }
  };

 public:
  /// The memory of one session. The destructor returns it to the pool.
  class Slab {
   public:
    Slab() = default;
    Slab(Slab&& other) noexcept { *this = std::move(other); }
    Slab& operator=(Slab&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(chunk_, other.chunk_);
      std::swap(index_, other.index_);
      return *this;
    }
    ~Slab() {
      if (pool_ != nullptr) pool_->give_back(chunk_, index_);
    }
    std::byte* data() const { return chunk_->memory->data() + index_ * chunk_->slab_bytes; }
    std::size_t size() const { return chunk_->slab_bytes; }
    std::uint32_t lkey() const { return chunk_->region->lkey(); }
    explicit operator bool() const { return pool_ != nullptr; }

   private:
    friend class ReceivePool;
    Slab(ReceivePool& pool, std::list<Chunk>::iterator chunk, std::uint32_t index)
        : pool_(&pool), chunk_(chunk), index_(index) {}
    ReceivePool* pool_ = nullptr;
    std::list<Chunk>::iterator chunk_{};
    std::uint32_t index_ = 0;
  };

  explicit ReceivePool(fabric::Device& device) : device_(device) {}

  /// Allocates memory, in whole pages, because the access of peers is revoked by pages. Returns an empty
  /// slab, and the reason, when the device refuses.
  Slab take(std::size_t bytes, std::string* error);

 private:
  bool add(std::size_t slab_bytes, std::string* error);
  void give_back(std::list<Chunk>::iterator chunk, std::uint32_t index);
  /// Returns true when an unused chunk is kept for a later session. At most one chunk is kept. The chunk
  /// keeps no pages. Allocating a chunk and mapping it at the peer is a large part of the cost of a session
  /// with few calls.
  bool keeps(const Chunk& unused) const;

  fabric::Device& device_;
  std::list<Chunk> chunks_;  ///< chunks with room come first
};

}  // namespace rdma_rpc::session

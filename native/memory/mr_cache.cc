// The registration cache: a hash map into two lists, entries in use and idle ones in the order of their last
// use. A hit allocates nothing.
#include "memory/mr_cache.h"

#include <iterator>
#include <utility>

#include "memory/access.h"

namespace rdma_rpc::memory {

MrCache::MrCache(fabric::Device& device, MrCacheOptions options)
    : device_(device),
      options_(options),
      access_(call_access(device, options.remote_access) |
              (options.on_demand && device.capabilities().on_demand ? fabric::access_on_demand : 0u)) {}

MrCache::~MrCache() = default;

const fabric::MemoryRegion* MrCache::acquire(std::uint64_t key, void* data, std::size_t bytes,
                                             std::uint64_t now_ns, std::string* error,
                                             std::shared_ptr<const fabric::Presence> presence) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return insert(key, data, bytes, now_ns, error, std::move(presence));

  const Entries::iterator entry = found->second;
  if (entry->data == data && entry->bytes == bytes) {
    ++counters_.hits;
    if (entry->pins++ == 0) {
      pinned_.splice(pinned_.begin(), idle_, entry);
      pinned_bytes_ += bytes;
    }
    entry->used_ns = now_ns;
    return entry->region.get();
  }
  if (entry->pins > 0) {
    return refuse(error, "the buffer was resized while a call still used it: wait for that call to settle");
  }
  remove(idle_, entry, false);
  const fabric::MemoryRegion* region = insert(key, data, bytes, now_ns, error, std::move(presence));
  if (region == nullptr && on_evict_) on_evict_(key);
  return region;
}

const fabric::MemoryRegion* MrCache::insert(std::uint64_t key, void* data, std::size_t bytes,
                                            std::uint64_t now_ns, std::string* error,
                                            std::shared_ptr<const fabric::Presence> presence) {
  if (data == nullptr || bytes == 0) return refuse(error, "an empty or detached buffer cannot be registered");
  if (!make_room(bytes, error)) return nullptr;

  std::string reason;
  auto region = device_.reg_mr(data, bytes, access_, &reason);
  // Registrations that nobody uses may be what fills the lock limit of the process.
  while (region == nullptr && device_.capabilities().pins_memory && !idle_.empty()) {
    evict_oldest();
    region = device_.reg_mr(data, bytes, access_, &reason);
  }
  if (region == nullptr) {
    return refuse(error, "a buffer of " + std::to_string(bytes) + " bytes cannot be registered: " + reason);
  }
  region->set_presence(std::move(presence));
  ++counters_.misses;
  ++counters_.entries;
  counters_.bytes += bytes;
  pinned_bytes_ += bytes;
  pinned_.push_front({key, data, bytes, std::move(region), 1, now_ns});
  by_key_.emplace(key, pinned_.begin());
  return pinned_.front().region.get();
}

// Evicts idle entries until one more of that size fits; nothing is evicted when that cannot be enough.
bool MrCache::make_room(std::size_t bytes, std::string* error) {
  const std::string limit = "mrCacheBytes (" + std::to_string(options_.max_bytes) + ")";
  if (bytes > options_.max_bytes) {
    refuse(error, "a buffer of " + std::to_string(bytes) + " bytes is larger than " + limit +
                      ": raise it, or allocate from the arena with allocBuffer()");
    return false;
  }
  if (bytes > options_.max_bytes - pinned_bytes_) {
    refuse(error, "a buffer of " + std::to_string(bytes) + " bytes does not fit: calls in flight use " +
                      std::to_string(pinned_bytes_) + " bytes of " + limit);
    return false;
  }
  if (pinned_.size() >= options_.max_entries) {
    refuse(error, "calls in flight use all of mrCacheEntriesMax (" + std::to_string(options_.max_entries) +
                      ") registered buffers");
    return false;
  }
  while (counters_.bytes > options_.max_bytes - bytes || counters_.entries >= options_.max_entries) {
    evict_oldest();
  }
  return true;
}

void MrCache::unpin(std::uint64_t key, std::uint64_t now_ns) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || found->second->pins == 0) return;
  const Entries::iterator entry = found->second;
  entry->used_ns = now_ns;
  if (--entry->pins > 0) return;
  pinned_bytes_ -= entry->bytes;
  idle_.splice(idle_.begin(), pinned_, entry);
}

void MrCache::expire(std::uint64_t now_ns) {
  while (!idle_.empty()) {
    const std::uint64_t used_ns = idle_.back().used_ns;
    if (now_ns < used_ns || now_ns - used_ns < options_.idle_ns) return;
    ++counters_.expired;
    remove(idle_, std::prev(idle_.end()), true);
  }
}

void MrCache::clear() {
  pinned_bytes_ = 0;
  for (Entries* entries : {&pinned_, &idle_}) {
    while (!entries->empty()) remove(*entries, entries->begin(), true);
  }
}

MrCacheCounters MrCache::counters() const {
  MrCacheCounters now = counters_;
  now.pinned = pinned_.size();
  return now;
}

const fabric::MemoryRegion* MrCache::refuse(std::string* error, std::string reason) {
  ++counters_.refused;
  if (error != nullptr) *error = std::move(reason);
  return nullptr;
}

void MrCache::evict_oldest() {
  ++counters_.evictions;
  remove(idle_, std::prev(idle_.end()), true);
}

// The callback comes last: it finds the cache as it will be afterwards.
void MrCache::remove(Entries& from, Entries::iterator entry, bool tell) {
  const std::uint64_t key = entry->key;
  --counters_.entries;
  counters_.bytes -= entry->bytes;
  by_key_.erase(key);
  from.erase(entry);
  if (tell && on_evict_) on_evict_(key);
}

}  // namespace rdma_rpc::memory

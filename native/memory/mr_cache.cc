// The registration cache is a hash map into two lists. One list has the entries in use, and the other has the
// idle entries in the order of their last use. A hit allocates nothing.
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
  if (!background_.empty()) background_.erase(key);
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
  // Idle registrations may be the reason that the process has reached its limit of locked memory.
  while (region == nullptr && device_.capabilities().pins_memory && !device_.refused_for_the_memory() &&
         !idle_.empty()) {
    evict_oldest();
    region = device_.reg_mr(data, bytes, access_, &reason);
  }
  if (region == nullptr) {
    return refuse(error, "a buffer of " + std::to_string(bytes) + " bytes cannot be registered: " + reason);
  }
  region->set_presence(std::move(presence));
  pinned_bytes_ += bytes;
  add(pinned_, {key, data, bytes, std::move(region), 1, now_ns});
  return pinned_.front().region.get();
}

void MrCache::add(Entries& to, Entry entry) {
  ++counters_.misses;
  ++counters_.entries;
  counters_.bytes += entry.bytes;
  to.push_front(std::move(entry));
  by_key_.emplace(to.front().key, to.begin());
}

bool MrCache::awaits(std::uint64_t key, void* data, std::size_t bytes, std::uint64_t now_ns,
                     std::shared_ptr<const fabric::Presence> presence) {
  if (bytes < options_.background_bytes || !start_) return false;
  // Each acquire() starts this only once, because a finished registration may have been evicted again, or
  // refused.
  if (const auto known = background_.find(key); known != background_.end())
    return known->second.registration != nullptr;
  if (holds(key) || background_.size() >= options_.max_entries || !why_no_room(bytes).empty()) return false;
  std::shared_ptr<fabric::Registration> registration = device_.begin_reg_mr(data, bytes, access_);
  if (registration == nullptr) return false;
  background_.emplace(key, Background{data, bytes, std::move(presence), registration, now_ns});
  if (start_(key, std::move(registration))) return true;
  background_.erase(key);
  return false;
}

void MrCache::finish(std::uint64_t key, const fabric::Registration& registration, std::uint64_t now_ns) {
  ++finished_;
  const auto found = background_.find(key);
  // The result is no longer needed. Either acquire() has registered the buffer in the meantime (another
  // attempt may be running), or the device was removed.
  if (found == background_.end() || found->second.registration.get() != &registration) return;
  Background& background = found->second;
  background.since_ns = now_ns;
  auto region = std::exchange(background.registration, nullptr)->finish(nullptr);
  // A freed buffer's address may have been reused.
  const bool present = background.presence == nullptr || background.presence->present();
  if (region == nullptr || !present || holds(key) || !make_room(background.bytes, nullptr)) return;
  region->set_presence(std::exchange(background.presence, nullptr));
  ++counters_.background;
  add(idle_, {key, background.data, background.bytes, std::move(region), 0, now_ns});
}

/// Returns "" when another region of `bytes` bytes can be registered, if necessary after idle entries have
/// been evicted.
std::string MrCache::why_no_room(std::size_t bytes) const {
  const std::string limit = "mrCacheBytes (" + std::to_string(options_.max_bytes) + ")";
  if (bytes > options_.max_bytes) {
    return "a buffer of " + std::to_string(bytes) + " bytes is larger than " + limit +
           ": raise it, or allocate from the arena with allocBuffer()";
  }
  if (bytes > options_.max_bytes - pinned_bytes_) {
    return "a buffer of " + std::to_string(bytes) + " bytes does not fit: calls in flight use " +
           std::to_string(pinned_bytes_) + " bytes of " + limit;
  }
  if (pinned_.size() >= options_.max_entries) {
    return "calls in flight use all of mrCacheEntriesMax (" + std::to_string(options_.max_entries) +
           ") registered buffers";
  }
  return {};
}

/// Evicts idle entries until another region of `bytes` bytes can be registered. Evicts nothing when evicting
/// all idle entries would not be enough.
bool MrCache::make_room(std::size_t bytes, std::string* error) {
  if (std::string why = why_no_room(bytes); !why.empty()) {
    refuse(error, std::move(why));
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
  std::erase_if(background_, [&](const auto& each) {
    const Background& background = each.second;
    return background.registration == nullptr && now_ns >= background.since_ns &&
           now_ns - background.since_ns >= options_.idle_ns;
  });
  while (!idle_.empty()) {
    const std::uint64_t used_ns = idle_.back().used_ns;
    if (now_ns < used_ns || now_ns - used_ns < options_.idle_ns) return;
    ++counters_.expired;
    remove(idle_, std::prev(idle_.end()), true);
  }
}

void MrCache::clear() {
  background_.clear();
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

// The callback is called last, so that it finds the cache in its final state.
void MrCache::remove(Entries& from, Entries::iterator entry, bool tell) {
  const std::uint64_t key = entry->key;
  --counters_.entries;
  counters_.bytes -= entry->bytes;
  by_key_.erase(key);
  from.erase(entry);
  if (tell && on_evict_) on_evict_(key);
}

}  // namespace rdma_rpc::memory

// The registration cache keeps the memory regions of application buffers between calls. The key is the
// identity of an ArrayBuffer (a number that the binding assigns) instead of its address. V8 reuses addresses
// after a collection. An address-keyed cache would also need hooks in malloc, which crash programs or corrupt
// their data. This code is called by the session (acquire, unpin) and the binding (expire), on the context's
// thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "fabric/fabric.h"

namespace rdma_rpc::memory {

struct MrCacheOptions {
  std::size_t max_bytes = std::size_t{256} << 20;  ///< limit of registered bytes, including pinned entries
  std::size_t max_entries = 1024;
  std::uint64_t idle_ns = 10'000'000'000;  ///< an entry unused for this time is evicted
  std::uint32_t remote_access = 0;         ///< rights of the peer when the device has no windows; 0 for none
  bool on_demand = false;                  ///< pages are loaded when accessed, where the device can do that
  /// Buffers of at least this size are registered in the background, if set_background() was called.
  /// By calculation, the kernel needs a quarter of a millisecond or more to pin their 1,024 pages.
  std::size_t background_bytes = std::size_t{4} << 20;
};

struct MrCacheCounters {
  std::uint64_t hits = 0, misses = 0, evictions = 0, expired = 0, refused = 0, entries = 0, bytes = 0,
                pinned = 0, background = 0;
};

class MrCache {
 public:
  MrCache(fabric::Device& device, MrCacheOptions options);
  ~MrCache();

  /// Returns the region of buffer `key`, pinned until unpin(), and registers the buffer if necessary. Returns
  /// null when the registration is refused (`error` says why, and names the limit). A changed address or
  /// length for a known key replaces the entry. The change is refused while the entry is pinned. The region
  /// is registered with local_write, and also with mw_bind if the device has windows. `presence` is attached
  /// to the region when it is registered by this call.
  const fabric::MemoryRegion* acquire(std::uint64_t key, void* data, std::size_t bytes, std::uint64_t now_ns,
                                      std::string* error,
                                      std::shared_ptr<const fabric::Presence> presence = nullptr);
  /// Sets how large buffers are registered in the background. `start` must run pin() on another thread, and
  /// later finish() on this thread. If it returns false, the buffer is registered on this thread.
  using Start = std::function<bool(std::uint64_t key, std::shared_ptr<fabric::Registration>)>;
  void set_background(Start start) { start_ = std::move(start); }
  /// Starts the background registration of the buffer if necessary, and returns true while it is in progress.
  /// The caller asks again when finished() has grown. Returns false when acquire() is fast, or when
  /// background registration has been tried.
  bool awaits(std::uint64_t key, void* data, std::size_t bytes, std::uint64_t now_ns,
              std::shared_ptr<const fabric::Presence> presence);
  void finish(std::uint64_t key, const fabric::Registration& registration, std::uint64_t now_ns);
  /// Total number of completed background registrations.
  std::uint64_t finished() const { return finished_; }
  bool holds(std::uint64_t key) const { return by_key_.contains(key); }
  void unpin(std::uint64_t key, std::uint64_t now_ns);
  /// Evicts entries that have been idle for too long. Must be called about once a second.
  void expire(std::uint64_t now_ns);
  /// Sets a function that is called after an entry has been evicted or has expired; the owner then no longer
  /// has to keep that buffer alive. The function is not called when an entry is replaced under its key, and
  /// the destructor does not call it.
  void on_evict(std::function<void(std::uint64_t)> callback) { on_evict_ = std::move(callback); }
  MrCacheCounters counters() const;
  /// Drops all entries, including pinned ones, which must no longer be in use. on_evict() is called for each.
  void clear();

 private:
  struct Entry {
    std::uint64_t key = 0;
    void* data = nullptr;
    std::size_t bytes = 0;
    std::unique_ptr<fabric::MemoryRegion> region;
    std::uint32_t pins = 0;
    std::uint64_t used_ns = 0;
  };
  using Entries = std::list<Entry>;

  /// A background registration, or its result until acquire() asks for it.
  struct Background {
    void* data;
    std::size_t bytes;
    std::shared_ptr<const fabric::Presence> presence;
    std::shared_ptr<fabric::Registration> registration;  ///< null after the registration has completed
    std::uint64_t since_ns;
  };

  const fabric::MemoryRegion* insert(std::uint64_t key, void* data, std::size_t bytes, std::uint64_t now_ns,
                                     std::string* error, std::shared_ptr<const fabric::Presence> presence);
  std::string why_no_room(std::size_t bytes) const;
  bool make_room(std::size_t bytes, std::string* error);
  void add(Entries& to, Entry entry);
  const fabric::MemoryRegion* refuse(std::string* error, std::string reason);
  void evict_oldest();
  void remove(Entries& from, Entries::iterator entry, bool tell);

  fabric::Device& device_;
  MrCacheOptions options_;
  const std::uint32_t access_;
  std::function<void(std::uint64_t)> on_evict_;
  Entries idle_;    // most recently used first
  Entries pinned_;  // in no order; an entry moves between the two lists without an allocation
  std::unordered_map<std::uint64_t, Entries::iterator> by_key_;
  std::unordered_map<std::uint64_t, Background> background_;
  Start start_;
  std::uint64_t finished_ = 0;
  std::size_t pinned_bytes_ = 0;
  MrCacheCounters counters_;
};

}  // namespace rdma_rpc::memory

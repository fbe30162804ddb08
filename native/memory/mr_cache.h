// The registration cache: memory regions of application buffers, kept between calls. The key is the identity
// of an ArrayBuffer (a number that the binding gives each one), not its address: V8 reuses addresses after
// collection, and an address-keyed cache needs hooks in malloc, which crash or corrupt. Called by the session
// (acquire, unpin) and the binding (expire), on the context's thread only.
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
  std::size_t max_bytes = std::size_t{256} << 20;  ///< registered at once, pinned entries included
  std::size_t max_entries = 1024;
  std::uint64_t idle_ns = 10'000'000'000;  ///< an entry unused for so long leaves
  std::uint32_t remote_access = 0;         ///< of the peer, without windows; 0: none
  bool on_demand = false;                  ///< pages come in when used, where the device can do that
  /// A buffer of so many bytes is registered in the background, where there is one: by arithmetic, the
  /// kernel pins its 1,024 pages in a quarter of a millisecond or more.
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

  /// The region of buffer `key`, registered now if it was not, pinned until unpin(). Null: refused (`error`
  /// says why, naming the limit). A changed address or length for a known key replaces the entry (or is
  /// refused while that is pinned). The region is registered local_write, and mw_bind where the device has
  /// windows.
  /// `presence` goes to a region that is registered now.
  const fabric::MemoryRegion* acquire(std::uint64_t key, void* data, std::size_t bytes, std::uint64_t now_ns,
                                      std::string* error,
                                      std::shared_ptr<const fabric::Presence> presence = nullptr);
  /// Where registrations of large buffers go on: `start` has pin() run on another thread, and sees to it that
  /// finish() is called on this one afterwards. False: it cannot, and the buffer is registered here.
  using Start = std::function<bool(std::uint64_t key, std::shared_ptr<fabric::Registration>)>;
  void set_background(Start start) { start_ = std::move(start); }
  /// True: the buffer is being registered in the background, since now or before; ask again when finished()
  /// has grown. False: acquire() does not take long, or it has been tried.
  bool awaits(std::uint64_t key, void* data, std::size_t bytes, std::uint64_t now_ns,
              std::shared_ptr<const fabric::Presence> presence);
  void finish(std::uint64_t key, const fabric::Registration& registration, std::uint64_t now_ns);
  /// Registrations in the background that are over, counting on.
  std::uint64_t finished() const { return finished_; }
  bool holds(std::uint64_t key) const { return by_key_.contains(key); }
  void unpin(std::uint64_t key, std::uint64_t now_ns);
  /// Evicts what has been idle too long. Call it about once a second.
  void expire(std::uint64_t now_ns);
  /// Called after an entry has left (evicted or expired): the owner no longer has to keep that
  /// buffer alive. Not called when an entry is replaced under its key, nor by the destructor.
  void on_evict(std::function<void(std::uint64_t)> callback) { on_evict_ = std::move(callback); }
  MrCacheCounters counters() const;
  /// Lets everything go, pinned or not: nobody uses it any more. on_evict() is called for each.
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

  /// A registration in the background, or what became of it until somebody asks.
  struct Background {
    void* data;
    std::size_t bytes;
    std::shared_ptr<const fabric::Presence> presence;
    std::shared_ptr<fabric::Registration> registration;  ///< null: it is over
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

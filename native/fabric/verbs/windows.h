// Memory windows, and the binding of each as of the last request posted or completion polled. The device
// knows it, too, but cannot be asked; and some devices do not survive a window that is left bound. On the
// device's thread.
#pragma once

#include <unordered_map>

#include "fabric/verbs/memory.h"

namespace rdma_rpc::fabric::verbs {

class QueuePair;
class Window;

class WindowTable {
 public:
  void add(Window& window);
  void remove(const Window& window);
  /// The window that has this key now, or null.
  Window* find(std::uint32_t key) const;

  /// Frees the device's windows that are or were bound on a queue pair, or to a region, that is about to be
  /// destroyed; the windows get new keys. Soft-RoCE would wait 50 s for a queue pair with a window, and never
  /// deregister the region.
  void free_those_on(const QueuePair& qp);
  void free_those_on(const Region& region);

 private:
  /// Windows by the part of their key that a bind does not change.
  std::unordered_map<std::uint32_t, Window*> windows_;
};

class Window final : public MemoryWindow {
 public:
  Window(MwPtr mw, WindowTable& table, DeviceCounters& counters);
  ~Window() override;

  /// Null when the device has refused to replace it: it can no longer be bound.
  ibv_mw* get() const { return mw_.get(); }
  const QueuePair* queue_pair() const { return queue_pair_; }
  const Region* region() const { return region_; }
  /// The queue pair of its last bind, also while the request that invalidates the key is under way, since that
  /// request may be flushed. Null once the key is known to be invalid.
  const QueuePair* last_queue_pair() const { return last_queue_pair_; }

  /// Call when a bind is posted. Returns the key that it makes.
  std::uint32_t bind(const QueuePair& qp, const Region& region);
  /// Call when the request with that number, which invalidates its key, is posted. The device may flush it.
  void unbind_by(std::uint32_t request);
  /// Call when its key has been invalidated.
  void unbind();
  /// Whether the device may still have it bound on the queue pair of its last bind.
  bool may_be_bound() const;
  /// Call when the library has posted the bind: the next bind starts from this key.
  void posted() { mw_->rkey = rkey_; }
  /// Whether the chain being made contains a bind of it; a second one has to wait for posted().
  bool in_chain() const { return mw_->rkey != rkey_; }

  void replace();

 private:
  MwPtr mw_;
  WindowTable& table_;
  DeviceCounters& counters_;
  void leave();

  const QueuePair *queue_pair_ = nullptr, *last_queue_pair_ = nullptr;
  std::uint32_t invalidated_by_ = 0;  ///< with a last queue pair and no other one
  const Region* region_ = nullptr;
};

}  // namespace rdma_rpc::fabric::verbs

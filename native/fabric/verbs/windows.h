// Memory windows, and what each is bound to as of the last request posted or completion polled. The device
// knows too, but does not tell; and some devices do not survive what a window that is forgotten does to them.
// On the device's thread.
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

  /// The device frees what is or was bound on a queue pair, or to a region, that is about to go; the windows
  /// get new keys. Soft-RoCE would wait 50 s for a queue pair with a window, and never deregister the region.
  void free_those_on(const QueuePair& qp);
  void free_those_on(const Region& region);

 private:
  /// By the part of the key that a bind does not change.
  std::unordered_map<std::uint32_t, Window*> windows_;
};

class Window final : public MemoryWindow {
 public:
  Window(MwPtr mw, WindowTable& table, DeviceCounters& counters);
  ~Window() override;

  /// Null once the device has refused to replace it: it cannot be bound any more.
  ibv_mw* get() const { return mw_.get(); }
  const QueuePair* queue_pair() const { return queue_pair_; }
  const Region* region() const { return region_; }
  /// Of its last bind, also when the key has been invalidated since: that may have been flushed.
  const QueuePair* last_queue_pair() const { return last_queue_pair_; }

  /// A bind has been posted. Gives the key that it makes.
  std::uint32_t bind(const QueuePair& qp, const Region& region);
  /// Its key has been invalidated, or will be before what is posted next.
  void unbind();
  /// The library has posted the bind: the next one begins with this key.
  void posted() { mw_->rkey = rkey_; }
  /// A bind of it is in the chain being made; a second has to wait for posted().
  bool in_chain() const { return mw_->rkey != rkey_; }

  void replace();

 private:
  MwPtr mw_;
  WindowTable& table_;
  DeviceCounters& counters_;
  const QueuePair *queue_pair_ = nullptr, *last_queue_pair_ = nullptr;
  const Region* region_ = nullptr;
};

}  // namespace rdma_rpc::fabric::verbs

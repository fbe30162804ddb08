// Implements memory windows, and keeps the state of each window's binding after the last posted request and
// polled completion. This state is kept here because a device cannot be asked for it, and because some
// devices fail when a window is left bound. This code runs on the device's thread.
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
  /// Returns the window that has this key now, or null.
  Window* find(std::uint32_t key) const;

  /// Frees the device's windows that are or were bound on a queue pair or to a region, before that queue pair
  /// or region is destroyed. The windows get new keys. Otherwise soft-RoCE would wait 50 s before it destroys
  /// the queue pair, and would never deregister the region.
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

  /// Returns null when the device has refused to replace a freed window. The window can then not be bound
  /// again.
  ibv_mw* get() const { return mw_.get(); }
  const QueuePair* queue_pair() const { return queue_pair_; }
  const Region* region() const { return region_; }
  /// Returns the queue pair of the last bind, or null when the key is known to be invalid. While a request
  /// that invalidates the key is under way, the result is still the queue pair, because that request may be
  /// flushed.
  const QueuePair* last_queue_pair() const { return last_queue_pair_; }

  /// Must be called when a bind is posted. Returns the key that the bind makes.
  std::uint32_t bind(const QueuePair& qp, const Region& region);
  /// Must be called when a request that invalidates the key is posted; `request` is its number. The device
  /// may flush it.
  void unbind_by(std::uint32_t request);
  /// Must be called when the key has been invalidated.
  void unbind();
  /// Returns whether the device may still have the window bound on the queue pair of its last bind.
  bool may_be_bound() const;
  /// Must be called when the library has posted the bind, because the next bind starts from this key.
  void posted() { mw_->rkey = rkey_; }
  /// Returns whether the current chain contains a bind of this window. A second bind has to wait for
  /// posted().
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

// Declares what the pump needs from the event loop of a JS thread. There are two implementations: UvEventLoop
// for Node, and WaitThread, which needs no libuv, for Bun and Deno. A context chooses one of them when it
// opens. The pump uses it on the JS thread.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rdma_rpc::binding {

class EventLoop {
 public:
  /// The pump. The functions of the pump are called on the JS thread, never one inside another, and never
  /// after stop().
  class Listener {
   public:
    virtual void turn() = 0;
    /// Handles a readable descriptor.
    virtual void readable() = 0;
    virtual void tick() = 0;

   protected:
    ~Listener() = default;
  };

  virtual ~EventLoop() = default;
  /// Makes the loop call turn() in each iteration, without blocking.
  virtual void spin() = 0;
  /// Stops the calls of turn(). From now on readable() returns true when work has arrived.
  virtual void rest() = 0;
  /// Calls tick() once after `ms`. Replaces a tick() that is still pending.
  virtual void tick_after(std::uint64_t ms) = 0;
  virtual void stop() = 0;
  /// Stops, and stops using the descriptor at once. `then` runs in a later iteration and may destroy this
  /// object.
  virtual void close(std::function<void()> then) = 0;
  /// Returns true when code that waits for a promise which a callback resolves runs only after the turn. If
  /// so, a turn is limited to one batch.
  virtual bool promises_wait_for_turn() const = 0;
};

enum class LoopKind { libuv, thread };

/// Opens an event loop that watches `fd`. The event loop does not keep the process alive while it rests.
/// Returns null, with the reason in `error`, when the event loop cannot be created.
std::unique_ptr<EventLoop> open_event_loop(LoopKind kind, napi_env env, int fd, EventLoop::Listener& listener,
                                           std::string* error);

}  // namespace rdma_rpc::binding

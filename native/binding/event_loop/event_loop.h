// What the pump needs of the event loop of its JS thread. Two make it: UvEventLoop is Node's own, WaitThread
// goes without libuv, for Bun and Deno. Chosen when a context opens; used by the pump, on the JS thread.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rdma_rpc::binding {

class EventLoop {
 public:
  /// The pump. All on the JS thread, never one inside another, and none once the loop was told to stop.
  class Listener {
   public:
    virtual void turn() = 0;
    /// The descriptor can be read.
    virtual void readable() = 0;
    virtual void tick() = 0;

   protected:
    ~Listener() = default;
  };

  virtual ~EventLoop() = default;
  /// From now on the loop does not block, and each of its iterations has a turn().
  virtual void spin() = 0;
  /// No turn() any more: readable() tells when to go on.
  virtual void rest() = 0;
  /// One tick() after so long, instead of one that is still to come.
  virtual void tick_after(std::uint64_t ms) = 0;
  virtual void stop() = 0;
  /// Stops, and lets go of the descriptor at once. `then` runs in a later iteration, when this object may go.
  virtual void close(std::function<void()> then) = 0;
  /// True where what JS has promised in a callback goes on only after the turn: then one batch is a turn.
  virtual bool promises_wait_for_turn() const = 0;
};

enum class LoopKind { libuv, thread };

/// Watches `fd`. Keeps no process alive while it rests. Null, with the reason in `error`.
std::unique_ptr<EventLoop> open_event_loop(LoopKind kind, napi_env env, int fd, EventLoop::Listener& listener,
                                           std::string* error);

}  // namespace rdma_rpc::binding

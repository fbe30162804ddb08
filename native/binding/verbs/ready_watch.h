// Waits for the next completion of one completion queue in the event loop, and then calls a JS function.
// VerbsHost creates this object on the JS thread when JS waits for the first time. The object does not keep
// the process alive; runtime/verbs does that while an application waits.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <string>

#include "binding/event_loop/event_loop.h"
#include "checked/completion_queue.h"

namespace rdma_rpc::binding {

class ReadyWatch final : public EventLoop::Listener {
 public:
  /// Returns null, with the reason in `error`, when the queue cannot be watched.
  static std::unique_ptr<ReadyWatch> open(LoopKind kind, Napi::Env env,
                                          std::shared_ptr<checked::CompletionQueue> cq, std::string* error);

  /// Calls `callback` once when a completion arrives. Returns false when a completion may have arrived before
  /// this call; the caller must then poll first. `solicited` restricts this to messages that their sender has
  /// solicited, and to errors.
  bool arm(const Napi::Function& callback, bool solicited);
  /// Ends the watch. No callback is called from now on. `then` runs in a later iteration, and may destroy
  /// this object.
  void close(std::function<void()> then);

  void turn() override {}
  void readable() override;
  void tick() override {}

 private:
  ReadyWatch(Napi::Env env, std::shared_ptr<checked::CompletionQueue> cq) : env_(env), cq_(std::move(cq)) {}

  Napi::Env env_;
  std::shared_ptr<checked::CompletionQueue> cq_;
  std::unique_ptr<EventLoop> loop_;
  Napi::FunctionReference callback_;
};

}  // namespace rdma_rpc::binding

// See ready_watch.h.
#include "binding/verbs/ready_watch.h"

#include <utility>

#include "binding/event_loop/root_context.h"

namespace rdma_rpc::binding {

std::unique_ptr<ReadyWatch> ReadyWatch::open(LoopKind kind, Napi::Env env,
                                             std::shared_ptr<checked::CompletionQueue> cq,
                                             std::string* error) {
  const int fd = cq->on_device().fd();
  std::unique_ptr<ReadyWatch> watch(new ReadyWatch(env, std::move(cq)));
  watch->loop_ = open_event_loop(kind, env, fd, *watch, error);
  if (watch->loop_ == nullptr) return nullptr;
  watch->loop_->rest();
  return watch;
}

bool ReadyWatch::arm(const Napi::Function& callback, bool solicited) {
  fabric::CompletionQueue& queue = cq_->on_device();
  if (!(solicited ? queue.arm_solicited() : queue.arm())) return false;
  callback_ = Napi::Persistent(callback);
  loop_->rest();
  return true;
}

void ReadyWatch::readable() {
  cq_->on_device().acknowledge();
  if (callback_.IsEmpty()) return;
  const Napi::HandleScope scope(env_);
  const Napi::Function callback = callback_.Value();
  callback_.Reset();
  napi_value receiver = nullptr, result = nullptr, error = nullptr;
  napi_get_undefined(env_, &receiver);
  napi_get_global(env_, &receiver);
  if (napi_make_callback(env_, kRootContext, receiver, callback, 0, nullptr, &result) == napi_ok) return;
  bool pending = false;
  napi_is_exception_pending(env_, &pending);
  if (pending && napi_get_and_clear_last_exception(env_, &error) == napi_ok)
    napi_fatal_exception(env_, error);
}

void ReadyWatch::close(std::function<void()> then) {
  callback_.Reset();
  loop_->close(std::move(then));
  // The event loop has stopped watching the descriptor, so the descriptor may be closed with the queue.
  cq_.reset();
}

}  // namespace rdma_rpc::binding

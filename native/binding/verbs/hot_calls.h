// The calls of an `rdma-rpc/verbs` device that move data: post and poll. Programs make them millions of times
// each second, so they are functions of the JS object itself (give_method()) and find their queue without a
// hash table in the usual case. Owned by the JS object of the device, on the JS thread.
#pragma once

#include <napi.h>

#include "binding/verbs/verbs_host.h"

namespace rdma_rpc::binding {

class HotCalls {
 public:
  /// `host` is where the JS object stores its pointer to the host. The pointer is null once the device is
  /// closed.
  explicit HotCalls(VerbsHost* const* host) : host_(host) {}

  /// Gives the calls to the JS object `self`, which owns this object.
  void give_to(const Napi::Object& self);

 private:
  /// postSend(queue pair, rows, count, entries of a row), postRecv(queue pair, rows, count) and
  /// postShared(shared receives, rows, count) return undefined or a refusal.
  Napi::Value post_send(const Napi::CallbackInfo& info);
  Napi::Value post_recv(const Napi::CallbackInfo& info);
  Napi::Value post_shared(const Napi::CallbackInfo& info);
  /// poll(completion queue, rows): the number of completions, or -1 for a closed queue.
  Napi::Value poll(const Napi::CallbackInfo& info);

  VerbsHost* const* host_;
};

}  // namespace rdma_rpc::binding

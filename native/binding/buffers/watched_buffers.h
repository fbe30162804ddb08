// Whether buffers that the application has lent to calls still have their memory: `transfer()`, posting to a
// worker and byte streams take it away at any moment, and Node-API cannot hold it. One watch per buffer,
// shared by all calls and the registration that use it. Owned by Engine, on the JS thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "fabric/fabric.h"

namespace rdma_rpc::binding {

class WatchedBuffers {
 public:
  explicit WatchedBuffers(Napi::Env env);
  /// `key` is the buffer's identity. Null when the engine refuses, as one that is being terminated does.
  std::shared_ptr<const fabric::Presence> watch(std::uint64_t key, napi_value buffer);

 private:
  class Watch;
  using Watches = std::unordered_map<std::uint64_t, std::weak_ptr<Watch>>;

  Napi::Env env_;
  std::shared_ptr<Watches> watches_;  ///< also of each watch, which may be the last to go
};

}  // namespace rdma_rpc::binding

// Watches whether buffers that the application has lent to calls still have their memory. `transfer()`,
// posting to a worker and byte streams may take the memory away at any moment, and Node-API cannot prevent
// that. Each buffer has one watch. The registration of the buffer and all calls that use the buffer share the
// watch. Engine owns this object and uses it on the JS thread.
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
  /// Returns the watch of the buffer, whose identity is `key`. Returns null when the JS engine refuses, which
  /// happens while the thread is being terminated.
  std::shared_ptr<const fabric::Presence> watch(std::uint64_t key, napi_value buffer);

 private:
  class Watch;
  using Watches = std::unordered_map<std::uint64_t, std::weak_ptr<Watch>>;

  Napi::Env env_;
  std::shared_ptr<Watches> watches_;  ///< shared with each watch, which may outlive this object
};

}  // namespace rdma_rpc::binding

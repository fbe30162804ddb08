// Registers large buffers in the background: a thread of the pool pins their pages while the JS thread
// continues. Engine owns this object and uses it on the JS thread.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "fabric/fabric.h"

namespace rdma_rpc::binding {

class BackgroundRegistrations {
 public:
  using Finished = std::function<void(std::uint64_t key, const fabric::Registration&)>;

  /// `finished` is called on the JS thread, never after this object is destroyed. The device stays open while
  /// a registration is in progress.
  BackgroundRegistrations(napi_env env, std::weak_ptr<fabric::Device> device, Finished finished);
  ~BackgroundRegistrations();
  BackgroundRegistrations(const BackgroundRegistrations&) = delete;
  BackgroundRegistrations& operator=(const BackgroundRegistrations&) = delete;

  /// Must be called during a call from JS. Returns false when no thread can do the registration.
  bool start(std::uint64_t key, std::shared_ptr<fabric::Registration> registration);

 private:
  struct Work;

  napi_env env_;
  std::weak_ptr<fabric::Device> device_;
  std::shared_ptr<Finished> finished_;  ///< empty after this object is destroyed
};

}  // namespace rdma_rpc::binding

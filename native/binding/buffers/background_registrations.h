// Registrations of large buffers, whose pages a thread of the pool pins while the JS thread goes on. Owned by
// Engine, on the JS thread.
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

  /// `finished` is called on the JS thread, and no more once this has gone. The device stays open as long as
  /// a registration is under way.
  BackgroundRegistrations(napi_env env, std::weak_ptr<fabric::Device> device, Finished finished);
  ~BackgroundRegistrations();
  BackgroundRegistrations(const BackgroundRegistrations&) = delete;
  BackgroundRegistrations& operator=(const BackgroundRegistrations&) = delete;

  /// From a call of JS. False: there is no thread for it.
  bool start(std::uint64_t key, std::shared_ptr<fabric::Registration> registration);

 private:
  struct Work;

  napi_env env_;
  std::weak_ptr<fabric::Device> device_;
  std::shared_ptr<Finished> finished_;  ///< empty when this has gone
};

}  // namespace rdma_rpc::binding

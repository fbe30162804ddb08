// The RDMA devices of this machine, and opening one of them. Called when a device is opened or listed.
#pragma once

#include <span>
#include <string>

#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

class DeviceList {
 public:
  /// Makes the library fork-safe first, which it takes only before its first object.
  DeviceList();
  ~DeviceList();
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::span<ibv_device* const> devices() const { return {list_, static_cast<std::size_t>(count_)}; }
  /// "mlx5_0, mlx5_1".
  std::string names() const;
  /// Why there are none: kernel, module or driver. Empty when there are.
  std::string why_none() const;

 private:
  ibv_device** list_ = nullptr;
  int count_ = 0;
};

/// Null, and why.
ContextPtr open_context(ibv_device* device, std::string* why);

}  // namespace rdma_rpc::fabric::verbs

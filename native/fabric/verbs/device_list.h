// Lists the RDMA devices of this machine and opens one of them. This code is called when a device is opened
// or listed.
#pragma once

#include <span>
#include <string>

#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

class DeviceList {
 public:
  /// Makes the library fork-safe first, which is possible only before its first object is created.
  DeviceList();
  ~DeviceList();
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::span<ibv_device* const> devices() const { return {list_, static_cast<std::size_t>(count_)}; }
  /// Returns the names as text, such as "mlx5_0, mlx5_1".
  std::string names() const;
  /// Returns why the list is empty (kernel, module or driver), or "" when it is not.
  std::string why_none() const;

 private:
  ibv_device** list_ = nullptr;
  int count_ = 0;
};

/// Returns null, with the reason in `why`, when the device cannot be opened.
ContextPtr open_context(ibv_device* device, std::string* why);

}  // namespace rdma_rpc::fabric::verbs

// Defines the access rights with which arena chunks and application buffers are registered. The peer gets its
// rights from windows, for one call at a time. On a device without windows, the peer gets no access to this
// memory. The exception is an owner that asks for rights that last as long as the registration.
#pragma once

#include <cstdint>

#include "fabric/fabric.h"

namespace rdma_rpc::memory {

/// `remote` is the set of rights that the peer has as long as the memory is registered; 0 for no rights.
inline std::uint32_t call_access(const fabric::Device& device, std::uint32_t remote) {
  if (remote != 0) return fabric::access_local_write | remote;
  return fabric::access_local_write | (device.capabilities().windows ? fabric::access_mw_bind : 0u);
}

}  // namespace rdma_rpc::memory

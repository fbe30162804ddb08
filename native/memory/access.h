// The access rights of memory that calls use: arena chunks and application buffers are registered alike. The
// peer gets its rights from windows, one call at a time. A device without windows exposes none of this
// memory, unless its owner asks for standing rights.
#pragma once

#include <cstdint>

#include "fabric/fabric.h"

namespace rdma_rpc::memory {

/// `remote` is the set of rights that the peer has for as long as the memory is registered; 0 for none.
inline std::uint32_t call_access(const fabric::Device& device, std::uint32_t remote) {
  if (remote != 0) return fabric::access_local_write | remote;
  return fabric::access_local_write | (device.capabilities().windows ? fabric::access_mw_bind : 0u);
}

}  // namespace rdma_rpc::memory

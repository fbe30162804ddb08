// The local rights of all memory that calls use: arena chunks and application buffers are registered alike.
// Remote rights come from windows, one call at a time; a device without windows exposes none of this memory.
#pragma once

#include <cstdint>

#include "fabric/fabric.h"

namespace rdma_rpc::memory {

inline std::uint32_t call_access(const fabric::Device& device) {
  return fabric::access_local_write | (device.capabilities().windows ? fabric::access_mw_bind : 0u);
}

}  // namespace rdma_rpc::memory

// Checks that software devices make on a work request before they execute it, as a NIC does. Pure functions:
// sim and tcp use all of them, shm those of a bind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::software {

constexpr bool is_local(Opcode opcode) { return opcode == Opcode::bind_mw || opcode == Opcode::local_inv; }
constexpr bool is_send(Opcode opcode) { return opcode == Opcode::send || opcode == Opcode::send_with_inv; }
constexpr bool is_write(Opcode opcode) {
  return opcode == Opcode::rdma_write || opcode == Opcode::rdma_write_with_imm;
}

/// Sum of the segments' lengths, which may exceed the limit of a message.
std::uint64_t bytes_of(std::span<const Sge> sges);

/// Returns the status of a request that is invalid whatever its keys allow, or success. `bytes` is bytes_of()
/// its segments.
WcStatus why_malformed(const SendWr& wr, std::uint64_t bytes, const Capabilities& capabilities);

/// Whether a window with these rights may be bound on a region registered with `region_access`. The caller
/// checks separately that the region contains the range.
bool may_bind(std::uint32_t access, std::uint64_t length, std::uint32_t region_access);

/// Copies the segments one behind the other. Returns the end of the copy.
std::byte* gather(std::span<const Sge> sges, std::byte* to);

}  // namespace rdma_rpc::fabric::software

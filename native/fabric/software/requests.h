// Checks that software devices make on a work request before they execute it, as a NIC does. The functions
// are pure. sim and tcp use all of them, and shm uses those for binds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::software {

constexpr bool is_local(Opcode opcode) { return opcode == Opcode::bind_mw || opcode == Opcode::local_inv; }
constexpr bool is_send(Opcode opcode) {
  return opcode == Opcode::send || opcode == Opcode::send_with_inv || opcode == Opcode::send_with_imm;
}
constexpr bool is_atomic(Opcode opcode) {
  return opcode == Opcode::atomic_cmp_and_swp || opcode == Opcode::atomic_fetch_and_add;
}
/// Returns true for operations that fetch bytes from the peer: READ and the atomics.
constexpr bool brings_bytes(Opcode opcode) { return opcode == Opcode::rdma_read || is_atomic(opcode); }
/// Number of bytes that an atomic operates on.
inline constexpr std::uint32_t kAtomicBytes = sizeof(std::uint64_t);
constexpr bool is_write(Opcode opcode) {
  return opcode == Opcode::rdma_write || opcode == Opcode::rdma_write_with_imm;
}

/// Returns the sum of the segments' lengths, which may exceed the limit of a message.
std::uint64_t bytes_of(std::span<const Sge> sges);

/// Returns success, or the status of a request that is invalid independent of its keys. `bytes` is bytes_of()
/// its segments.
WcStatus why_malformed(const SendWr& wr, std::uint64_t bytes, const Capabilities& capabilities);

/// Returns success, or the status of a request that a queue pair of this type cannot execute.
WcStatus why_not_on(QpType type, const SendWr& wr, std::uint64_t bytes, const Capabilities& capabilities);

/// Returns whether a window with these rights may be bound on a region registered with `region_access`. The
/// caller checks separately that the region contains the range.
bool may_bind(std::uint32_t access, std::uint64_t length, std::uint32_t region_access);

/// Executes an atomic on that word, atomically for all CPUs. Returns the previous value.
std::uint64_t update(std::uint64_t* word, Opcode opcode, const SendWr::Atomic& operands);

/// Copies the segments to `to`, one behind the other. Returns the end of the copy.
std::byte* gather(std::span<const Sge> sges, std::byte* to);

}  // namespace rdma_rpc::fabric::software

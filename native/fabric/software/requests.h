// What the devices that are made in software ask of a work request before they carry it out, as a NIC does.
// Pure functions: sim and tcp use all of them, shm those of a bind.
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

/// The bytes of its pieces, which may be more than a message can have.
std::uint64_t bytes_of(std::span<const Sge> sges);

/// How a request fails that is wrong whatever the keys in it are, or success. `bytes`: bytes_of() its pieces.
WcStatus why_malformed(const SendWr& wr, std::uint64_t bytes, const Capabilities& capabilities);

/// Whether a window with these rights may be bound on a region that was registered with those. That the
/// region holds the bytes is looked at apart.
bool may_bind(std::uint32_t access, std::uint64_t length, std::uint32_t region_access);

/// Copies the pieces behind each other. Returns where the copy ends.
std::byte* gather(std::span<const Sge> sges, std::byte* to);

}  // namespace rdma_rpc::fabric::software

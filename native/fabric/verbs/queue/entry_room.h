// Calculates the size of each entry of a queue pair's send queue, and the memory that the queues take. This
// code is called when a queue pair is made, on the device's thread.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric::verbs {

struct EntryRoom {
  std::uint32_t sges, inline_bytes;
};

inline EntryRoom entry_room(const QpOptions& options, const Capabilities& can) {
  const auto wanted = [](std::uint32_t asked, std::uint32_t most) {
    return asked == 0 ? most : std::min(asked, most);
  };
  return {wanted(options.max_sge, can.max_sge), wanted(options.max_inline, can.max_inline)};
}

/// Returns an estimate of the locked memory of the two queues. The estimate follows the layout of mlx5; other
/// devices have entries of about the same size, and all of them round up to powers of two.
inline std::uint64_t ring_bytes(const ibv_qp_cap& cap) {
  constexpr std::uint64_t kHead = 32, kSge = 16, kInlineHead = 4, kUnit = 64;
  const std::uint64_t gathered = kSge * cap.max_send_sge, carried = kInlineHead + cap.max_inline_data;
  const std::uint64_t entry = (kHead + std::max(gathered, carried) + kUnit - 1) / kUnit * kUnit;
  const std::uint64_t receive = std::bit_ceil(std::uint64_t{kSge} * cap.max_recv_sge);
  return std::bit_ceil(entry * cap.max_send_wr) + std::bit_ceil(receive * std::max(cap.max_recv_wr, 1u));
}

}  // namespace rdma_rpc::fabric::verbs

// Defines the layout of work requests and completions as JS writes and reads them: rows of doubles in typed
// arrays. A double holds every integer up to 2^53 exactly. Addresses of a process have at most 47 bits (or 56
// when the process asks for more; Device refuses to register such addresses). All other values have 32 bits.
// runtime/native/verbs-device.ts has the same constants, and a test compares the two. This file is used by
// the queues of this folder, on the JS thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.h"

namespace rdma_rpc::checked {

/// Columns of a work request of a send queue. The scatter/gather entries of the request follow these columns.
/// A bind uses them as follows: `ah` is its window, `remote_addr` and the two columns of `compare` are its
/// range, `rkey` is the lkey of its region, and `swap_low` is its rights.
namespace send_record {
inline constexpr std::size_t wr_id = 0, opcode = 1, flags = 2, sges = 3, remote_addr = 4, rkey = 5, imm = 6,
                             invalidate_rkey = 7, compare_high = 8, compare_low = 9, swap_high = 10,
                             swap_low = 11, ah = 12, remote_qpn = 13, remote_qkey = 14, header = 15;
}
/// Columns of a scatter/gather entry.
namespace sge_record {
inline constexpr std::size_t addr = 0, length = 1, lkey = 2, words = 3;
}
/// Columns of a receive.
namespace recv_record {
inline constexpr std::size_t wr_id = 0, addr = 1, length = 2, lkey = 3, words = 4;
}
/// Columns of a completion.
namespace completion_record {
inline constexpr std::size_t wr_id = 0, status = 1, opcode = 2, flags = 3, qp_num = 4, bytes = 5, imm = 6,
                             invalidated_rkey = 7, src_qp = 8, words = 9;
}

/// Bits of send_record::flags, as in `enum ibv_send_flags`.
enum SendFlags : std::uint32_t {
  send_fence = 1u << 0,
  send_signaled = 1u << 1,
  send_solicited = 1u << 2,
  send_inline = 1u << 3,
};
/// Bits of completion_record::flags, as in `enum ibv_wc_flags`.
enum CompletionFlags : std::uint32_t {
  completion_grh = 1u << 0,
  completion_with_imm = 1u << 1,
  completion_with_inv = 1u << 3,
};

/// These functions convert to and from the numbers that JS uses, which are those of `enum ibv_wr_opcode`,
/// `enum ibv_wc_opcode` and `enum ibv_wc_status`. opcode_of() returns false for a number that this layer does
/// not offer.
bool opcode_of(std::uint32_t number, fabric::Opcode* opcode);
std::uint32_t completion_number(fabric::Opcode opcode);
std::uint32_t status_number(fabric::WcStatus status);

/// Reads a whole number from 0 to `max`. Returns false for everything else, including NaN.
inline bool whole(double given, double max, std::uint64_t* value) {
  if (!(given >= 0 && given <= max)) return false;
  *value = static_cast<std::uint64_t>(given);
  return static_cast<double>(*value) == given;
}
inline bool whole32(double given, std::uint32_t* value) {
  std::uint64_t wide = 0;
  if (!whole(given, UINT32_MAX, &wide)) return false;
  *value = static_cast<std::uint32_t>(wide);
  return true;
}
/// The largest integer up to which a double represents every integer exactly.
inline constexpr double kExactMax = 9007199254740991;

}  // namespace rdma_rpc::checked

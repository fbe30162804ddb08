// See requests.h.
#include "fabric/software/requests.h"

#include <cstring>

namespace rdma_rpc::fabric::software {

std::uint64_t bytes_of(std::span<const Sge> sges) {
  std::uint64_t bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

WcStatus why_malformed(const SendWr& wr, std::uint64_t bytes, const Capabilities& capabilities) {
  const bool data = is_send(wr.opcode) || is_write(wr.opcode);
  const bool atomic = is_atomic(wr.opcode), read = wr.opcode == Opcode::rdma_read || atomic;
  if (!(data || read || is_local(wr.opcode))) return WcStatus::loc_qp_op_err;
  if (wr.opcode == Opcode::send_with_imm && !capabilities.send_immediate) return WcStatus::loc_qp_op_err;
  const bool one_word = wr.sges.size() == 1 && bytes == kAtomicBytes && wr.remote_addr % kAtomicBytes == 0;
  if (atomic && !(capabilities.atomics && one_word)) return WcStatus::loc_qp_op_err;
  if (wr.opcode == Opcode::rdma_write_with_imm && !capabilities.immediate) return WcStatus::loc_qp_op_err;
  if ((is_local(wr.opcode) || wr.opcode == Opcode::send_with_inv) && !capabilities.windows)
    return WcStatus::loc_qp_op_err;
  if (wr.sges.size() > (read ? capabilities.max_sge_read : capabilities.max_sge))
    return WcStatus::loc_qp_op_err;
  if (is_local(wr.opcode) && !wr.sges.empty()) return WcStatus::loc_qp_op_err;
  if (wr.inline_data && (!data || bytes > capabilities.max_inline)) return WcStatus::loc_qp_op_err;
  if (bytes > capabilities.max_msg_bytes) return WcStatus::loc_len_err;
  if (wr.opcode == Opcode::bind_mw && (wr.bind.window == nullptr || wr.bind.region == nullptr))
    return WcStatus::mw_bind_err;
  return WcStatus::success;
}

WcStatus why_not_on(QpType type, const SendWr& wr, std::uint64_t bytes, const Capabilities& capabilities) {
  const bool plain = wr.opcode == Opcode::send || wr.opcode == Opcode::send_with_imm;
  switch (type) {
    case QpType::rc:
      return WcStatus::success;
    case QpType::uc:
      return plain || is_write(wr.opcode) || is_local(wr.opcode) ? WcStatus::success
                                                                 : WcStatus::loc_qp_op_err;
    case QpType::ud:
      break;
  }
  if (!plain || wr.ud.ah == nullptr || wr.ud.remote_qpn > kMulticastQpn) return WcStatus::loc_qp_op_err;
  return bytes <= capabilities.max_datagram_bytes ? WcStatus::success : WcStatus::loc_len_err;
}

bool may_bind(std::uint32_t access, std::uint64_t length, std::uint32_t region_access) {
  const bool writes = (access & (access_remote_write | access_remote_atomic)) != 0;
  return access != 0 && (access & ~kRemoteAccess) == 0 && length > 0 &&
         (region_access & access_mw_bind) != 0 && (!writes || (region_access & access_local_write) != 0);
}

std::uint64_t update(std::uint64_t* word, Opcode opcode, const SendWr::Atomic& operands) {
  if (opcode == Opcode::atomic_fetch_and_add)
    return __atomic_fetch_add(word, operands.compare_add, __ATOMIC_SEQ_CST);
  std::uint64_t before = operands.compare_add;
  __atomic_compare_exchange_n(word, &before, operands.swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return before;
}

std::byte* gather(std::span<const Sge> sges, std::byte* to) {
  for (const Sge& sge : sges) {
    if (sge.length == 0) continue;
    std::memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.length);
    to += sge.length;
  }
  return to;
}

}  // namespace rdma_rpc::fabric::software

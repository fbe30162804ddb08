// See records.h.
#include "checked/records.h"

namespace rdma_rpc::checked {

using fabric::Opcode;
using fabric::WcStatus;

bool opcode_of(std::uint32_t number, Opcode* opcode) {
  switch (number) {
    case 0:
      *opcode = Opcode::rdma_write;
      return true;
    case 1:
      *opcode = Opcode::rdma_write_with_imm;
      return true;
    case 2:
      *opcode = Opcode::send;
      return true;
    case 3:
      *opcode = Opcode::send_with_imm;
      return true;
    case 4:
      *opcode = Opcode::rdma_read;
      return true;
    case 5:
      *opcode = Opcode::atomic_cmp_and_swp;
      return true;
    case 6:
      *opcode = Opcode::atomic_fetch_and_add;
      return true;
    case 7:
      *opcode = Opcode::local_inv;
      return true;
    case 8:
      *opcode = Opcode::bind_mw;
      return true;
    case 9:
      *opcode = Opcode::send_with_inv;
      return true;
    default:
      return false;
  }
}

std::uint32_t completion_number(Opcode opcode) {
  switch (opcode) {
    case Opcode::send:
    case Opcode::send_with_imm:
    case Opcode::send_with_inv:
      return 0;
    case Opcode::rdma_write:
    case Opcode::rdma_write_with_imm:
      return 1;
    case Opcode::rdma_read:
      return 2;
    case Opcode::atomic_cmp_and_swp:
      return 3;
    case Opcode::atomic_fetch_and_add:
      return 4;
    case Opcode::bind_mw:
      return 5;
    case Opcode::local_inv:
      return 6;
    case Opcode::recv:
      return 128;
    case Opcode::recv_rdma_with_imm:
      return 129;
  }
  return 0;
}

std::uint32_t status_number(WcStatus status) {
  switch (status) {
    case WcStatus::success:
      return 0;
    case WcStatus::loc_len_err:
      return 1;
    case WcStatus::loc_qp_op_err:
      return 2;
    case WcStatus::loc_prot_err:
      return 4;
    case WcStatus::wr_flush_err:
      return 5;
    case WcStatus::mw_bind_err:
      return 6;
    case WcStatus::rem_inv_req_err:
      return 9;
    case WcStatus::rem_access_err:
      return 10;
    case WcStatus::retry_exc_err:
      return 12;
    case WcStatus::rnr_retry_exc_err:
      return 13;
    case WcStatus::rem_abort_err:
      return 16;
    case WcStatus::general_err:
      return 21;
  }
  return 21;
}

}  // namespace rdma_rpc::checked

// See status.h. Drivers disagree about the meaning of some statuses; the comments name the differences.
#include "fabric/verbs/queue/status.h"

namespace rdma_rpc::fabric::verbs {
namespace {

bool has_local_entries(Opcode opcode) { return opcode != Opcode::bind_mw && opcode != Opcode::local_inv; }

}  // namespace

WcStatus status_of(ibv_wc_status status, bool receive, Opcode opcode) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return WcStatus::success;
    case IBV_WC_LOC_LEN_ERR:
      return WcStatus::loc_len_err;
    // Soft-RoCE reports this for a request or receive whose entries are outside their region. Any other
    // invalid operation is rejected before it reaches the device.
    case IBV_WC_LOC_QP_OP_ERR:
      return has_local_entries(opcode) ? WcStatus::loc_prot_err : WcStatus::loc_qp_op_err;
    case IBV_WC_LOC_PROT_ERR:
      return WcStatus::loc_prot_err;
    case IBV_WC_WR_FLUSH_ERR:
      return WcStatus::wr_flush_err;
    case IBV_WC_MW_BIND_ERR:
      return WcStatus::mw_bind_err;
    // Soft-RoCE reports this status for a receive that is too small for the message.
    case IBV_WC_REM_INV_REQ_ERR:
      return receive ? WcStatus::loc_len_err : WcStatus::rem_inv_req_err;
    // The peer's device could not put the message into the receive.
    case IBV_WC_REM_OP_ERR:
      return WcStatus::rem_inv_req_err;
    case IBV_WC_REM_ACCESS_ERR:
      return WcStatus::rem_access_err;
    case IBV_WC_RETRY_EXC_ERR:
      return WcStatus::retry_exc_err;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return WcStatus::rnr_retry_exc_err;
    case IBV_WC_REM_ABORT_ERR:
      return WcStatus::rem_abort_err;
    default:
      return WcStatus::general_err;
  }
}

}  // namespace rdma_rpc::fabric::verbs

// Names of the enumerations in fabric.h, for error texts and logs, and the checks of arguments that all
// devices share. For any thread.
#include "fabric/fabric.h"

#include <sys/mman.h>

#include "fabric/receive_queue.h"

namespace rdma_rpc::fabric {

const char* to_string(WcStatus status) {
  switch (status) {
    case WcStatus::success:
      return "success";
    case WcStatus::loc_len_err:
      return "loc_len_err";
    case WcStatus::loc_qp_op_err:
      return "loc_qp_op_err";
    case WcStatus::loc_prot_err:
      return "loc_prot_err";
    case WcStatus::wr_flush_err:
      return "wr_flush_err";
    case WcStatus::mw_bind_err:
      return "mw_bind_err";
    case WcStatus::rem_inv_req_err:
      return "rem_inv_req_err";
    case WcStatus::rem_access_err:
      return "rem_access_err";
    case WcStatus::retry_exc_err:
      return "retry_exc_err";
    case WcStatus::rnr_retry_exc_err:
      return "rnr_retry_exc_err";
    case WcStatus::rem_abort_err:
      return "rem_abort_err";
    case WcStatus::general_err:
      return "general_err";
  }
  return "unknown status";
}

const char* to_string(QpState state) {
  switch (state) {
    case QpState::reset:
      return "RESET";
    case QpState::init:
      return "INIT";
    case QpState::rtr:
      return "RTR";
    case QpState::rts:
      return "RTS";
    case QpState::err:
      return "ERR";
  }
  return "unknown state";
}

std::string why_not_on_demand(const Capabilities& capabilities) {
  return capabilities.name +
         " has no on-demand paging (Capabilities::on_demand): register without access_on_demand";
}

std::string why_not_register(const void* addr, std::size_t length, std::uint32_t access,
                             const Capabilities& capabilities) {
  if (length == 0) return "a memory region cannot be empty";
  if (length > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(addr))
    return "a memory region cannot run past the end of the address space";
  if ((access & access_remote_write) != 0 && (access & access_local_write) == 0)
    return "remote write access needs local write access too";
  if ((access & access_on_demand) != 0 && !capabilities.on_demand) return why_not_on_demand(capabilities);
  return {};
}

std::string why_no_queues(const QpOptions& options, const Capabilities& capabilities) {
  const std::uint32_t receives = options.shared_receives == nullptr ? options.recv_wr_max : 1;
  for (const std::uint32_t depth : {options.send_wr_max, receives}) {
    if (depth == 0 || depth > capabilities.max_qp_wr)
      return "a queue of " + std::to_string(depth) + " requests is outside 1 to max_qp_wr (" +
             std::to_string(capabilities.max_qp_wr) + ")";
  }
  return {};
}

std::unique_ptr<MemoryRegion> Device::reg_dmabuf_mr(int, std::uint64_t, std::size_t, std::uint64_t,
                                                    std::uint32_t, std::string* error) {
  if (error == nullptr) return nullptr;
  *error = "fabric " + capabilities().name +
           " cannot register a dmabuf (Capabilities::dmabuf); copy to host memory";
  return nullptr;
}

std::unique_ptr<ReceiveQueue> Device::create_receive_queue(CompletionQueue&, std::uint32_t,
                                                           std::string* error) {
  if (error != nullptr)
    *error = "fabric " + capabilities().name + " has no shared receives (Capabilities::max_srq_wr)";
  return nullptr;
}

std::shared_ptr<std::byte> mapped_pages(void* data, std::size_t bytes) {
  return {static_cast<std::byte*>(data), [bytes](std::byte* pages) { ::munmap(pages, bytes); }};
}

}  // namespace rdma_rpc::fabric

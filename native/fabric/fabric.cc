// Implements the names of the enumerations in fabric.h, for error texts and logs, and the checks of arguments
// that all devices share. This code may run on any thread.
#include "fabric/fabric.h"

#include <sys/mman.h>

#include <algorithm>

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
    case QpState::sqd:
      return "SQD";
    case QpState::sqe:
      return "SQE";
  }
  return "unknown state";
}

const char* to_string(QpType type) {
  switch (type) {
    case QpType::rc:
      return "RC";
    case QpType::uc:
      return "UC";
    case QpType::ud:
      return "UD";
  }
  return "unknown type";
}

const char* to_string(AsyncEvent::Kind kind) {
  switch (kind) {
    case AsyncEvent::Kind::sq_drained:
      return "sq_drained";
    case AsyncEvent::Kind::srq_limit_reached:
      return "srq_limit_reached";
    case AsyncEvent::Kind::qp_fatal:
      return "qp_fatal";
    case AsyncEvent::Kind::port_active:
      return "port_active";
    case AsyncEvent::Kind::port_error:
      return "port_error";
    case AsyncEvent::Kind::device_fatal:
      return "device_fatal";
  }
  return "unknown event";
}

std::string why_no_queues(const QpOptions& options, const Capabilities& capabilities) {
  if (options.type != QpType::rc) {
    const bool ud = options.type == QpType::ud;
    if (std::string why = capabilities.why_not(ud ? Feature::ud : Feature::uc); !why.empty()) return why;
    if ((options.qkey >> 31) != 0) return "the top bit of a Q_Key must be 0";
  }
  if (options.stepwise) {
    if (std::string why = capabilities.why_not(Feature::steps); !why.empty()) return why;
  }
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

std::string QueuePair::move_to(QpState state) {
  return std::string("the fabric moves no queue pair to ") + to_string(state) +
         " on request (Capabilities::drains, resets)";
}

std::string QueuePair::attach_multicast(const Gid&) {
  return "the fabric has no multicast (Capabilities::multicast)";
}

std::string QueuePair::detach_multicast(const Gid& group) { return attach_multicast(group); }

std::string ReceiveQueue::arm_limit(std::uint32_t) {
  return "the fabric does not watch how many shared receives are posted (Capabilities::srq_limit)";
}

std::unique_ptr<AddressHandle> Device::create_ah(const AhAttr&, std::string* error) {
  if (error != nullptr) *error = capabilities().why_not(Feature::ud);
  return nullptr;
}

std::unique_ptr<AddressHandle> Device::create_ah_from(const Wc&, const std::byte*, std::string* error) {
  return create_ah({}, error);
}

std::size_t Device::poll_events(std::span<AsyncEvent> out) {
  const std::size_t count = std::min(out.size(), events_.size());
  std::copy_n(events_.begin(), count, out.begin());
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void Device::note_event(const AsyncEvent& event) {
  constexpr std::size_t kEventsMax = 1024;
  if (events_.size() < kEventsMax) events_.push_back(event);
}

std::shared_ptr<std::byte> mapped_pages(void* data, std::size_t bytes) {
  return {static_cast<std::byte*>(data), [bytes](std::byte* pages) { ::munmap(pages, bytes); }};
}

}  // namespace rdma_rpc::fabric

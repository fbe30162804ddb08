// Implements the behaviour of UC and UD queue pairs that differs from RC. A wrong request never reaches the
// device. Such a request moves the queue pair to SQE, as IBTA demands, and receives continue there. Every
// request that the device gets is signaled, so all of them have completed when the queue pair goes to SQE.
// See queue_pair.h.
#include <algorithm>
#include <cstring>

#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs {

std::string QueuePair::connect_datagrams(std::span<const std::byte> remote_address) {
  const auto refuse = [this](const std::string& why) {
    to_error();
    return device_.capabilities().name + ": " + why;
  };
  if (!remote_address.empty()) return refuse("a UD queue pair has no peer; connect it without an address");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  if (const int error = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE); error != 0)
    return refuse(std::string("the queue pair cannot receive: ") + std::strerror(error));
  state_ = QpState::rtr;
  if (stepwise_) return "";
  const std::string why = step_to(QpState::rts);
  return why.empty() ? why : refuse(why);
}

WcStatus QueuePair::check_unreliable(const SendWr& wr, std::uint64_t bytes) const {
  const bool sends = wr.opcode == Opcode::send || wr.opcode == Opcode::send_with_imm;
  const bool writes = wr.opcode == Opcode::rdma_write || wr.opcode == Opcode::rdma_write_with_imm;
  if (type_ == QpType::uc) return sends || writes ? WcStatus::success : WcStatus::loc_qp_op_err;
  if (!sends || wr.ud.ah == nullptr) return WcStatus::loc_qp_op_err;
  return bytes > device_.capabilities().max_datagram_bytes ? WcStatus::loc_len_err : WcStatus::success;
}

/// Returns the number of requests before the first wrong one.
std::size_t QueuePair::leading_good(std::span<const SendWr> requests) const {
  const auto is_wrong = [this](const SendWr& wr) { return check(wr, total(wr.sges)) != WcStatus::success; };
  return static_cast<std::size_t>(std::find_if(requests.begin(), requests.end(), is_wrong) -
                                  requests.begin());
}

void QueuePair::refuse(const SendWr& request) {
  sends_.push_failed({request.wr_id, 0, request.opcode, check(request, total(request.sges))});
  state_ = QpState::sqe;
  cq_.forget(*this);  // it may still be listed from an earlier time in SQE
  cq_.has_failed(*this);
}

std::string QueuePair::attach_multicast(const Gid& group) {
  const Capabilities& can = device_.capabilities();
  if (!can.multicast) return can.why_not(Feature::multicast);
  if (type_ != QpType::ud) return can.name + ": only a UD queue pair can be attached to a multicast group";
  if (qp_ == nullptr || state_ == QpState::err) return can.name + ": the queue pair has failed";
  for (const auto& each : groups_) {
    if (each->gid() == group) return "";
  }
  std::string why;
  if (auto joined = Group::join(qp_.get(), device_.port(), group, &why)) groups_.push_back(std::move(joined));
  return why;
}

std::string QueuePair::detach_multicast(const Gid& group) {
  const auto is_it = [&group](const std::unique_ptr<Group>& each) { return each->gid() == group; };
  return std::erase_if(groups_, is_it) != 0
             ? ""
             : device_.capabilities().name + ": the queue pair is not attached to that group";
}

}  // namespace rdma_rpc::fabric::verbs

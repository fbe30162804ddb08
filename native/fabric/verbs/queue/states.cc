// Implements the moves between states that a user asks for; see QueuePair::move_to() in fabric.h. This code
// runs on the device's thread.
#include <cstring>

#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs {

std::string QueuePair::move_to(QpState state) {
  const bool stops = state_ == QpState::rts && state == QpState::sqd;
  const bool goes_on = state_ == QpState::sqd && state == QpState::rts;
  const bool recovers = state_ == QpState::sqe && state == QpState::rts;
  const bool steps = stepwise_ && ((state_ == QpState::reset && state == QpState::init) ||
                                   (state_ == QpState::rtr && state == QpState::rts));
  if (state == QpState::reset) return device_.capabilities().why_not(Feature::reset);
  if (stops || goes_on) {
    // An iWARP driver may accept a state that its devices do not have.
    std::string why = device_.capabilities().why_not(Feature::drain);
    return why.empty() ? change_drain(stops) : why;
  }
  if (steps) return step_to(state);
  if (!recovers)
    return device_.capabilities().name + ": a queue pair in " + to_string(state_) + " cannot be moved to " +
           to_string(state);
  state_ = QpState::rts;
  return "";
}

std::string QueuePair::change_drain(bool stops) {
  const QpState to = stops ? QpState::sqd : QpState::rts;
  ibv_qp_attr attr{};
  attr.qp_state = stops ? IBV_QPS_SQD : IBV_QPS_RTS;
  attr.en_sqd_async_notify = 1;
  const int error = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | (stops ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));
  if (error != 0)
    return device_.capabilities().name + " does not move a queue pair to " + to_string(to) + ": " +
           std::strerror(error);
  state_ = to;
  return "";
}

std::string QueuePair::step_to(QpState state) {
  if (state == QpState::rts) {
    if (type_ != QpType::ud) return connection_->go_to_rts();
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = address_.psn;
    if (const int error = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN); error != 0)
      return std::string("the queue pair cannot send: ") + std::strerror(error);
    connected();
    return "";
  }
  if (const int error = move_to_init(); error != 0) return why_not_init(error);
  state_ = QpState::init;
  return "";
}

}  // namespace rdma_rpc::fabric::verbs

// Implements the state changes of a queue pair: those that a user requests, and the change after a failed
// send on UC and UD. See fabric.h. This file is part of SimQueuePair and is used on the world's thread.
#include "fabric/sim/queue_pair.h"

namespace rdma_rpc::fabric {

std::string SimQueuePair::move_to(QpState state) {
  const Capabilities& can = device_.capabilities();
  const bool stops = state_ == QpState::rts && state == QpState::sqd;
  const bool goes_on = (state_ == QpState::sqd || state_ == QpState::sqe) && state == QpState::rts;
  const bool steps = options_.stepwise && ((state_ == QpState::reset && state == QpState::init) ||
                                           (state_ == QpState::rtr && state == QpState::rts));
  const bool starts_over = state == QpState::reset || (state_ == QpState::reset && state == QpState::init);
  if (!(stops || goes_on || starts_over || steps))
    return std::string("sim: a queue pair in ") + to_string(state_) + " cannot be moved to " +
           to_string(state);
  const Feature feature = steps ? Feature::steps : starts_over ? Feature::reset : Feature::drain;
  if (std::string why = can.why_not(feature); !why.empty()) return why;
  if (killed_) return "sim: the queue pair was killed";
  if (state == QpState::reset) reset();
  state_ = state;
  tells_drained_ = stops;
  if (goes_on) failed_ = false;
  world_.wake(*this, world_.now());
  if (peer_ != nullptr) world_.wake(*peer_, world_.now());
  world_.settle();
  return {};
}

/// UC and UD: the sends that follow a failed send are flushed, and receiving continues.
void SimQueuePair::enter_sqe() {
  if (state_ != QpState::rts && state_ != QpState::sqd) return;
  state_ = QpState::sqe;
  flush_sends();
}

void SimQueuePair::flush_sends() {
  for (; sends_.retired != sends_.posted; ++sends_.retired) {
    const SendSlot& slot = send_slot(sends_.retired);
    if (sends_.retired >= sends_.started) drop_bind(slot);
    complete_send(slot, WcStatus::wr_flush_err, sends_.retired + 1);
  }
  sends_.started = sends_.posted;
  reads_waiting_ = 0;
}

void SimQueuePair::note_drained() {
  if (state_ != QpState::sqd || sends_.retired != sends_.started) return;
  tells_drained_ = false;
  device_.note_event({.kind = AsyncEvent::Kind::sq_drained, .qp_num = qp_num_});
  cq_.announce();
}

/// Resets everything except its number: requests, completions that were not polled, its peer, and its
/// windows.
void SimQueuePair::reset() {
  cq_.forget(*this, 0);
  held_.clear();
  holding_ = false;
  for (; sends_.started != sends_.posted; ++sends_.started) drop_bind(send_slot(sends_.started));
  sends_.freed = sends_.retired = sends_.posted;
  own_receives_.use(own_receives_.unused());
  receives_.freed(options_.shared_receives == nullptr ? 0 : unpolled_);
  own_receives_.free_used();
  device_.protection.keys.invalidate_all_on(qp_num_);
  world_.wake_peers_of(*this);
  if (peer_ != nullptr) peer_->reached_by_.erase(qp_num_);
  peer_ = nullptr;
  for (const std::uint32_t number : reached_by_) {
    SimQueuePair* other = world_.find(number);
    other->peer_ = nullptr;
    other->peer_gone_as_ = WcStatus::retry_exc_err;
  }
  reached_by_.clear();
  error_.clear();
  inbox_.clear();
  assembly_ = {};
  groups_.clear();
  reads_waiting_ = 0;
  received_ = unpolled_ = 0;
  failed_ = end_reported_ = false;
}

}  // namespace rdma_rpc::fabric

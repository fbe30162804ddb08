// See sideband_connection.h.
#include "fabric/verbs/connect/sideband_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/verbs/connect/path.h"
#include "fabric/verbs/connect/service.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Time for which the passive side waits for the blocking call before it answers. The answer makes the active
/// side send, and its first packets should find a queue pair that is ready. Resolving a neighbour takes less
/// time than this when it is known or responds. If it takes longer, the first packets are sent again.
constexpr std::chrono::milliseconds kPassiveWait{5};

}  // namespace

SidebandConnection::SidebandConnection(Device& device, QueuePair& qp) : device_(device), qp_(qp) {
  device_.attempts().enter(*this);
}

SidebandConnection::~SidebandConnection() { device_.attempts().leave(*this); }

std::string SidebandConnection::start(const Address& peer) {
  peer_ = peer;
  const Address& own = qp_.address();
  device_.refresh_port();
  if (device_.port().address.gid != own.gid)
    return "the GID " + gid_text(own.gid.data()) + " of " + device_.capabilities().name +
           " has gone while the connection was made; it is " + gid_text(device_.port().address.gid.data()) +
           " now";
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(std::min(own.mtu, peer.mtu));
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(own.reads);
  attr.min_rnr_timer = device_.options().min_rnr_timer;
  attr.ah_attr = path_to(device_.port(), peer);
  attr.ah_attr.grh.flow_label = flow_label(own.qp_num, peer.qp_num);
  set_service(device_.options(), &attr.ah_attr);
  const int reliable = qp_.type() == QpType::rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
  auto to_rtr = [qp = qp_.get(), attr, reliable]() mutable {
    return ibv_modify_qp(
        qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | reliable);
  };
  if (qp_.is_stepwise()) {
    const int error = to_rtr();
    return error == 0 ? "" : why_not_rtr(error);
  }
  thread_ = ConnectThread::start(to_rtr, device_.attempts().wake_up());
  if (thread_ == nullptr) return "no thread to connect on: " + std::string(std::strerror(EAGAIN));
  device_.attempts().limit(*this,
                           Attempts::Clock::now() + std::chrono::milliseconds(qp_.connect_timeout_ms()));
  if (own.active != 0) return "";
  const std::optional<int> result = thread_->result(kPassiveWait);
  if (!result) return "";
  std::string why = finish(*result);
  // The thread has rung the wake-up, so it is read now. Otherwise it would wake the next sleeper for nothing.
  // All connections share the wake-up, so progress() checks the other connections, too.
  device_.attempts().progress();
  return why;
}

void SidebandConnection::call_returned() {
  const std::optional<int> result = thread_ == nullptr ? std::nullopt : thread_->result();
  if (!result) return;
  const std::string why = finish(*result);
  if (!why.empty()) qp_.fail(why);
}

/// Continues the connection with the result of the thread's call. Returns "", or why the queue pair is not
/// connected.
std::string SidebandConnection::finish(int error) {
  thread_->release();
  thread_.reset();
  if (given_up_) return "";
  device_.attempts().forget_limit(*this);
  return error != 0 ? why_not_rtr(error) : go_to_rts();
}

std::string SidebandConnection::why_not_rtr(int error) const {
  return "the peer's GID " + gid_text(peer_.gid.data()) + " cannot be reached from " +
         device_.capabilities().name + " (GID " + gid_text(qp_.address().gid.data()) +
         "): " + std::strerror(error) +
         (error == ENOMEM ? "; the device has no more resources for READs of peers (max_res_rd_atom)"
                          : "; is it in another subnet, without a route?");
}

std::string SidebandConnection::go_to_rts() {
  std::string why = move_to_rts();
  if (why.empty()) qp_.connected();
  return why;
}

std::string SidebandConnection::move_to_rts() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = device_.options().ack_timeout;
  attr.retry_cnt = device_.options().retry_count;
  attr.rnr_retry = rnr_retries(device_.options(), peer_);
  attr.sq_psn = qp_.address().psn;
  attr.max_rd_atomic = static_cast<std::uint8_t>(
      std::clamp<std::uint32_t>(peer_.reads, 1, device_.capabilities().max_rd_atomic));
  constexpr int kReliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  const int error = ibv_modify_qp(qp_.get(), &attr,
                                  IBV_QP_STATE | IBV_QP_SQ_PSN | (qp_.type() == QpType::rc ? kReliable : 0));
  return error == 0 ? "" : std::string("the queue pair cannot send: ") + std::strerror(error);
}

void SidebandConnection::expire() {
  qp_.fail("no host answers for the peer's GID " + gid_text(peer_.gid.data()) + " from " +
           device_.capabilities().name + ", GID " + gid_text(qp_.address().gid.data()) + qp_.within_limit());
}

void SidebandConnection::disconnect() {
  given_up_ = true;
  device_.attempts().forget_limit(*this);
}

void SidebandConnection::close(QueueObjects queue) {
  if (thread_ != nullptr) thread_->abandon({nullptr, std::move(queue), nullptr});
  thread_.reset();
}

}  // namespace rdma_rpc::fabric::verbs

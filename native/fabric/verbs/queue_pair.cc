// See queue_pair.h.
#include "fabric/verbs/queue_pair.h"

#include <algorithm>
#include <cstring>

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint32_t kRemoteRights = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

}  // namespace

QueuePair::QueuePair(Device& device, CompletionQueue& cq, CompletionQueue::Bank& bank,
                     const QpOptions& options, QpPtr qp, const Address& address)
    : device_(device),
      cq_(cq),
      bank_(bank),
      qp_(std::move(qp)),
      address_(address),
      place_(device.enter(*this)),
      sends_(options.send_wr_max),
      receives_(options.recv_wr_max),
      sges_(std::size_t{kChain} * device.capabilities().max_sge) {
  qp_num_ = qp_->qp_num;
  address_.qp_num = qp_num_;
  if (device.cm() != nullptr) connection_ = std::make_unique<Connection>(*device.cm(), *this);
  ++device_.counts().queue_pairs;
  if (!move_to_init()) to_error();
}

QueuePair::~QueuePair() {
  if (connection_ != nullptr) to_error();
  device_.windows().free_those_on(*this);
  device_.leave(place_);
  cq_.forget(*this);
  cq_.give_back(bank_, device_sends(sends_.capacity(), device_.capabilities()) + receives_.capacity());
  --device_.counts().queue_pairs;
  if (connection_ != nullptr)
    connection_->close(device_.with_its_needs(cq_.channel(), bank_.cq, std::move(qp_)));
}

bool QueuePair::move_to_init() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = device_.port().number;
  attr.qp_access_flags = kRemoteRights;
  return ibv_modify_qp(qp_.get(), &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

QpState QueuePair::state() const {
  if (state_ != QpState::rts) return state_;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  if (ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &init) != 0) return QpState::err;
  return attr.qp_state == IBV_QPS_ERR ? QpState::err : state_;
}

std::vector<std::byte> QueuePair::local_address() const { return encode(address_); }

std::string QueuePair::connect(std::span<const std::byte> remote_address) {
  if (state_ != QpState::init) return std::string("connect() in state ") + to_string(state_);
  Address peer;
  Way way{};
  std::string why = decode(remote_address, address_, &peer, &way);
  if (why.empty() && way == way_cm) {
    state_ = QpState::rtr;
    why = connection_->start(peer);
  } else if (why.empty()) {
    connection_.reset();
    why = move_to_rts(peer);
    if (why.empty()) state_ = QpState::rts;
  }
  if (!why.empty()) to_error();
  return why;
}

void QueuePair::fail(const std::string& why) {
  if (state_ == QpState::err) return;
  error_ = why;
  to_error();
}

void QueuePair::flushed() {
  if (state_ == QpState::err) return;
  device_.read_async_events();
  fail(device_.capabilities().name +
       " has ended the queue pair and does not say why; the peer may have closed the connection");
}

void QueuePair::not_carried_out() {
  if (state_ != QpState::err) error_ = why_down(device_.context(), device_.port().number);
  to_error();
}

void QueuePair::data_came() {
  if (connection_ != nullptr) connection_->data_came();
}

std::string QueuePair::move_to_rts(const Address& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(std::min(address_.mtu, peer.mtu));
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(address_.reads);
  attr.min_rnr_timer = device_.options().min_rnr_timer;
  attr.ah_attr.dlid = peer.lid;
  attr.ah_attr.port_num = device_.port().number;
  attr.ah_attr.is_global = address_.link_layer == IBV_LINK_LAYER_ETHERNET ? 1 : 0;
  attr.ah_attr.grh.sgid_index = device_.port().gid_index;
  attr.ah_attr.grh.hop_limit = kHopLimit;
  std::memcpy(attr.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  int error = ibv_modify_qp(qp_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0)
    return "the peer's GID " + gid_text(peer.gid.data()) + " cannot be reached from " +
           device_.capabilities().name + " (GID " + gid_text(address_.gid.data()) +
           "): " + std::strerror(error) + "; is it in another subnet, without a route?";
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = device_.options().ack_timeout;
  attr.retry_cnt = device_.options().retry_count;
  attr.rnr_retry = 0;
  attr.sq_psn = address_.psn;
  attr.max_rd_atomic = static_cast<std::uint8_t>(
      std::clamp<std::uint32_t>(peer.reads, 1, device_.capabilities().max_rd_atomic));
  error = ibv_modify_qp(qp_.get(), &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC);
  return error == 0 ? "" : std::string("the queue pair cannot send: ") + std::strerror(error);
}

bool QueuePair::look_after_requests() {
  if (state_ != QpState::rts || !sends_.device_has_some()) return false;
  if (sends_.head() != oldest_) {
    oldest_ = sends_.head();
    waits_s_ = 0;
  }
  ++waits_s_;
  // Of requests without a signal nobody knows.
  if (held_.empty() && !sends_.newest_tells() &&
      device_sends(sends_.capacity(), device_.capabilities()) == sends_.capacity() + kInternalMax)
    ask_for_last_packet();
  const VerbsOptions& options = device_.options();
  const std::uint32_t limit = Watchdog::limit_s(options.ack_timeout, options.retry_count);
  if (waits_s_ > limit && sends_.newest_tells())
    fail(device_.capabilities().name + " has not carried out a request for " + std::to_string(limit) +
         " s; that is more than all of its retries take (options ackTimeout and retryCount)");
  return true;
}

void QueuePair::to_error() {
  if (state_ == QpState::err) return;
  state_ = QpState::err;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE);
  if (connection_ != nullptr) connection_->disconnect();
  sends_.flush_held();
  held_.clear();
  cq_.has_failed(*this);
}

void QueuePair::lose_device(const std::string& why) {
  fail(why);
  sends_.take_all_back();
  receives_.take_all_back();
}

void QueuePair::lose_completions(const std::string& why) {
  bank_.failed = lost_completions_ = true;
  fail(why);
}

bool QueuePair::device_holds_up() const {
  // A thread of the connection may need the queue pair for long.
  if (connection_ != nullptr && connection_->busy()) return false;
  return sends_.device_has_some() || receives_.device_has_some();
}

bool QueuePair::is_flushing() {
  return device_holds_up() || sends_.next_failed() != nullptr || receives_.next_failed() != nullptr;
}

void QueuePair::finish_flush() {
  if (!device_holds_up()) return;
  if (qp_ == nullptr) {
    sends_.take_all_back();
    receives_.take_all_back();
    return;
  }
  device_.windows().free_those_on(*this);
  qp_.reset();
}

std::size_t QueuePair::poll_failed(std::span<Wc> out) {
  std::size_t count = 0;
  for (WorkQueue* queue : {&sends_, &receives_}) {
    for (Entry* entry; count < out.size() && (entry = queue->next_failed()) != nullptr; queue->pop_failed()) {
      if (entry->internal) continue;
      out[count] = {};
      out[count].wr_id = entry->wr_id;
      out[count].status = entry->status;
      out[count].opcode = entry->opcode;
      out[count++].qp_num = qp_num_;
    }
  }
  return count;
}

}  // namespace rdma_rpc::fabric::verbs

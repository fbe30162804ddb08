// See queue_pair.h.
#include "fabric/verbs/queue/queue_pair.h"

#include <algorithm>
#include <cstring>

#include "fabric/verbs/connect/cm_connection.h"
#include "fabric/verbs/connect/sideband_connection.h"
#include "fabric/verbs/soft/driver.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr unsigned kRemoteRights = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

std::uint32_t connect_limit_ms(const QpOptions& options, const Device& device) {
  const std::uint32_t own = device.options().connect_timeout_ms;
  return options.connect_timeout_ms == 0 ? own : std::min(options.connect_timeout_ms, own);
}

}  // namespace

QueuePair::QueuePair(Device& device, CompletionQueue& cq, CompletionQueue::DeviceCq& device_cq,
                     const QpOptions& options, QpPtr qp, const Address& address, std::uint64_t ring_bytes)
    : device_(device),
      cq_(cq),
      device_cq_(device_cq),
      type_(options.type),
      qkey_(options.qkey),
      stepwise_(options.stepwise),
      connect_timeout_ms_(connect_limit_ms(options, device)),
      qp_(std::move(qp)),
      address_(address),
      state_(options.stepwise ? QpState::reset : QpState::init),
      slot_(device.enter(*this)),
      sends_(options.send_wr_max),
      receives_(options.recv_wr_max),
      shared_(static_cast<ReceiveQueue*>(options.shared_receives)),
      tag_(options.tag),
      device_sends_(device_sends(options, device)),
      ring_bytes_(ring_bytes),
      room_(entry_room(options, device.capabilities())),
      sges_(std::size_t{kChain} * room_.sges),
      workaround_(type_ == QpType::rc ? soft::make_workaround(device.driver(), *this) : nullptr) {
  qp_num_ = qp_->qp_num;
  address_.qp_num = qp_num_;
  if (type_ != QpType::rc) address_.reads = 0;
  // rdma_cm connects RC alone, and makes all steps by itself.
  if (type_ != QpType::rc || stepwise_)
    address_.ways = static_cast<std::uint8_t>((address_.ways & ~way_cm) | way_sideband |
                                              (type_ == QpType::uc ? way_uc : 0));
  if ((address_.ways & way_cm) != 0)
    connection_ = std::make_unique<CmConnection>(*device.cm(), device.attempts(), *this);
  if (device.capabilities().active_side_sends_first && options.active)
    nudge_ = std::make_unique<soft::Nudge>(*this);
  if (shared_ != nullptr) device.enter_on_shared(*this);
  ++device_.counts().queue_pairs;
  device_.reserve_reads(address_.reads);
  device_.memory_bytes() += ring_bytes_;
  if (const int error = stepwise_ ? 0 : move_to_init(); error != 0) fail(why_not_init(error));
}

std::string QueuePair::why_not_init(int error) const {
  return device_.capabilities().name + " does not take a new queue pair to INIT on port " +
         std::to_string(device_.port().number) + ", with P_Key index " +
         std::to_string(device_.options().pkey_index) + " (option pkeyIndex): " + std::strerror(error);
}

QueuePair::~QueuePair() {
  if (connection_ != nullptr) to_error();
  device_.windows().free_those_on(*this);
  device_.leave(*this, slot_);
  cq_.forget(*this);
  cq_.retire(device_cq_, device_sends_ + receives_.capacity());
  --device_.counts().queue_pairs;
  device_.return_reads(address_.reads);
  device_.memory_bytes() -= ring_bytes_;
  if (connection_ != nullptr)
    connection_->close(device_.with_its_needs(
        cq_.channel(), device_cq_.cq, shared_ == nullptr ? SrqPtr() : shared_->srq(), std::move(qp_)));
}

std::uint32_t QueuePair::internal_sends(bool active, const Device& device) {
  if (device.capabilities().active_side_sends_first) return kAsksMax + (active ? soft::Nudge::kSendsMax : 0);
  return kAsksMax + soft::own_sends(device.driver());
}

std::uint32_t QueuePair::device_sends(const QpOptions& options, const Device& device) {
  return std::min(options.send_wr_max + internal_sends(options.active, device),
                  device.capabilities().max_qp_wr);
}

unsigned QueuePair::remote_rights() const {
  return kRemoteRights | (device_.capabilities().atomics ? unsigned{IBV_ACCESS_REMOTE_ATOMIC} : 0u);
}

int QueuePair::move_to_init() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = device_.port().number;
  attr.pkey_index = device_.options().pkey_index;
  // A UC queue pair can be given neither READs nor atomics.
  attr.qp_access_flags = type_ == QpType::uc ? unsigned{IBV_ACCESS_REMOTE_WRITE} : remote_rights();
  attr.qkey = qkey_;
  return ibv_modify_qp(qp_.get(), &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                           (type_ == QpType::ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

QpState QueuePair::state() const {
  if (state_ != QpState::rts) return state_;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  if (ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &init) != 0) return QpState::err;
  return attr.qp_state == IBV_QPS_ERR ? QpState::err : state_;
}

std::string QueuePair::within_limit() const {
  const std::uint32_t own = device_.options().connect_timeout_ms;
  const std::string text = " within " + std::to_string(connect_timeout_ms_) + " ms";
  if (connect_timeout_ms_ >= own) return text + " (option verbs.connectTimeoutMs)";
  // runtime/control/rails.ts has computed this limit.
  return text + " (one device's part of the shorter of option verbs.connectTimeoutMs, which is " +
         std::to_string(own) + " ms, and 80 % of option connectTimeoutMs of the channel)";
}

std::vector<std::byte> QueuePair::local_address() const { return encode(address_); }

std::string QueuePair::connect(std::span<const std::byte> remote_address) {
  if (state_ == QpState::err && !error_.empty()) return error_;
  if (state_ != QpState::init) return std::string("connect() in state ") + to_string(state_);
  if (type_ == QpType::ud) return connect_datagrams(remote_address);
  Address peer;
  Way way = way_cm;
  const bool listener = device_.options().other_listeners && names_listener(remote_address);
  std::string why = listener ? decode_listener(remote_address, address_, &peer)
                             : decode(remote_address, address_, &peer, &way);
  if (why.empty()) {
    if (way == way_sideband) connection_ = std::make_unique<SidebandConnection>(device_, *this);
    state_ = QpState::rtr;
    why = connection_->start(peer);
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
  has_ended();
}

void QueuePair::takes_no_more() {
  takes_no_more_ = true;
  // When all receives are shared and no request is outstanding, this event is the only sign that the device
  // has ended the queue pair.
  has_ended();
}

/// Fails the queue pair unless this side has ended it already. Finds out the reason if possible.
void QueuePair::has_ended() {
  if (state_ == QpState::err) return;
  // Soft-RoCE of Linux 6.12 also flushes requests when it could not send their packets.
  const std::string& down = device_.why_port_down();
  fail(!down.empty() ? down
                     : device_.capabilities().name +
                           " has ended the queue pair and does not say why; the peer may have closed the "
                           "connection" +
                           soft::other_silent_end(device_.driver()));
}

void QueuePair::not_carried_out() {
  if (state_ != QpState::err) error_ = device_.why_port_down();
  to_error();
}

void QueuePair::data_came() {
  if (connection_ != nullptr) connection_->data_came();
}

void QueuePair::to_error() {
  if (state_ == QpState::err) return;
  state_ = QpState::err;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE);
  if (connection_ != nullptr) connection_->disconnect();
  sends_.flush_held();
  if (workaround_ != nullptr) workaround_->failed();
  if (type_ != QpType::rc) cq_.forget(*this);  // it is listed after a time in SQE
  cq_.has_failed(*this);
}

void QueuePair::lose_device(const std::string& why) {
  fail(why);
  sends_.flush_all();
  receives_.flush_all();
  settled_ = true;
}

void QueuePair::lose_completions(const std::string& why) {
  device_cq_.failed = lost_completions_ = true;
  fail(why);
}

bool QueuePair::device_holds_up() const {
  // The connection's thread may use the queue pair for a long time.
  if (connection_ != nullptr && connection_->busy()) return false;
  return sends_.device_has_some() || receives_.device_has_some() || (shared_ != nullptr && !settled_);
}

bool QueuePair::is_flushing() {
  if (state_ != QpState::err) return sends_.next_failed() != nullptr;
  return device_holds_up() || (shared_ != nullptr && !end_reported_) || sends_.next_failed() != nullptr ||
         receives_.next_failed() != nullptr;
}

bool QueuePair::finish_flush() {
  if (state_ != QpState::err || !device_holds_up()) return false;
  if (qp_ == nullptr) {
    sends_.flush_all();
    receives_.flush_all();
    settled_ = true;
    return false;
  }
  // If the queue pair were destroyed now, a shared receive that it has taken and not completed yet would be
  // lost.
  if (shared_ != nullptr && !takes_no_more_ && ++looks_ < kLooksForLast) {
    device_.read_async_events();
    return false;
  }
  device_.windows().free_those_on(*this);
  groups_.clear();
  qp_.reset();
  return true;
}

std::size_t QueuePair::poll_failed(std::span<Wc> out) {
  std::size_t count = 0;
  const bool ended = state_ == QpState::err;
  if (shared_ != nullptr && ended && !end_reported_ && !out.empty()) {
    end_reported_ = true;
    out[count] = {};
    out[count].wr_id = kNoReceive;
    out[count].status = WcStatus::wr_flush_err;
    out[count].opcode = Opcode::recv;
    out[count].tag = tag_;
    out[count++].qp_num = qp_num_;
  }
  if (shared_ != nullptr && ended && device_holds_up()) return count;
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

// See cm_connection.h.
#include "fabric/verbs/connect/cm_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/verbs/connect/service.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Reject reasons of the kernel: IB_CM_REJ_INVALID_SERVICE_ID (no listener), IB_CM_REJ_CONSUMER_DEFINED
/// (rdma_reject()).
constexpr int kInvalidServiceId = 8, kRejected = 28;

/// RNR retry count for listeners of other programs. When the peer has no receive, this value retries without
/// limit.
constexpr std::uint8_t kRnrRetryEndless = 7;

/// Number of requests that an active side sends within the time limit while no answer comes.
constexpr int kRequests = 4;

/// Compares two tokens in constant time.
bool equal(const Token& a, const Token& b) {
  std::uint8_t differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ = static_cast<std::uint8_t>(differ | (a[i] ^ b[i]));
  return differ == 0;
}

bool is_iwarp(const Address& address) { return (address.ways & way_iwarp) != 0; }

}  // namespace

CmConnection::CmConnection(ConnectionManager& manager, Attempts& attempts, QueuePair& qp)
    : manager_(manager), attempts_(attempts), qp_(qp) {
  manager_.enter(*this);
  attempts_.enter(*this);
}

CmConnection::~CmConnection() {
  attempts_.leave(*this);
  manager_.leave(*this);
}

std::string CmConnection::start(const Address& peer) {
  peer_ = peer;
  limit_ = Attempts::Clock::now() + std::chrono::milliseconds(qp_.connect_timeout_ms());
  set_timer();
  std::string why;
  if (qp_.address().active != 0) {
    why = resolve();
  } else {
    phase_ = Phase::waiting;
    // A request came before connect(). The sender of the request is the peer, or another process that has
    // seen our address.
    if (id_ != nullptr && equal(asked_by_, active_word())) {
      why = accept();
    } else {
      id_.reset();
    }
  }
  if (!why.empty()) {
    end(Phase::down);
    id_.reset();
  }
  return why;
}

void CmConnection::set_timer() {
  // A listener of another program would mistake a second request for one of another client.
  const bool asks = qp_.address().active != 0 && !is_iwarp(peer_) && !peer_.other;
  const std::chrono::milliseconds limit(qp_.connect_timeout_ms());
  const auto soon = Attempts::Clock::now() + limit / kRequests;
  attempts_.limit(*this, asks ? std::min(limit_, soon) : limit_);
}

std::string CmConnection::resolve() {
  phase_ = Phase::resolving;
  id_.reset();
  id_ = manager_.create_id(this);
  // The id is bound to our own address. Otherwise two devices of one host would bypass the wire between them.
  const IpAddress& own = manager_.address();
  sockaddr_storage from = to_sockaddr({own.bytes, 0, own.scope});
  sockaddr_storage to = to_sockaddr({peer_.ip, peer_.ip_port, own.scope});
  if (id_ == nullptr || rdma_resolve_addr(id_.get(), reinterpret_cast<sockaddr*>(&from),
                                          reinterpret_cast<sockaddr*>(&to), time_left_ms()) != 0)
    return peer_name() + " cannot be reached: " + std::strerror(errno);
  return "";
}

rdma_conn_param CmConnection::parameters() const {
  const Device& device = manager_.device();
  rdma_conn_param parameters{};
  parameters.responder_resources = static_cast<std::uint8_t>(qp_.address().reads);
  parameters.initiator_depth = static_cast<std::uint8_t>(
      std::clamp<std::uint32_t>(peer_.reads, 1, device.capabilities().max_rd_atomic));
  parameters.retry_count = device.options().retry_count;
  parameters.qp_num = qp_.qp_num();
  return parameters;
}

std::string CmConnection::connect() {
  phase_ = Phase::connecting;
  private_data_.passive = peer_.token;
  private_data_.active = active_word();
  rdma_conn_param with = parameters();
  if (peer_.other) {
    with.rnr_retry_count = kRnrRetryEndless;
  } else {
    with.private_data = &private_data_;
    with.private_data_len = sizeof private_data_;
  }
  if (is_iwarp(peer_)) {
    const auto call = [id = id_.get(), with, data = private_data_]() mutable {
      if (with.private_data != nullptr) with.private_data = &data;
      return rdma_connect(id, &with) == 0 ? 0 : errno;
    };
    thread_ = ConnectThread::start(call, attempts_.wake_up());
    return thread_ == nullptr ? "no thread to connect on: " + std::string(std::strerror(EAGAIN)) : "";
  }
  return rdma_connect(id_.get(), &with) == 0 ? "" : refused(errno);
}

/// Returns the token of the active side, which both sides know.
Token CmConnection::active_word() const {
  const bool active = qp_.address().active != 0;
  const auto& words = qp_.first_words();
  if (!words) return active ? qp_.address().token : peer_.token;
  // The libstdc++ with which the package's binaries are built has no std::bit_cast.
  Token word;
  std::memcpy(word.data(), (active ? words->own : words->peer).data(), word.size());
  return word;
}

std::string CmConnection::accept() {
  phase_ = Phase::accepting;
  if (!is_iwarp(peer_) && !ready_) {
    std::string why = move_to(IBV_QPS_INIT);
    if (why.empty()) why = move_to_rts();
    if (!why.empty()) {
      rdma_reject(id_.get(), nullptr, 0);
      return why;
    }
    ready_ = true;
  }
  rdma_conn_param with = parameters();
  if (rdma_accept(id_.get(), &with) == 0) return "";
  if (is_iwarp(peer_)) return std::string("the peer's request cannot be accepted: ") + std::strerror(errno);
  wait_again();
  return "";
}

void CmConnection::wait_again() {
  id_.reset();
  phase_ = Phase::waiting;
}

std::string CmConnection::move_to_rts() {
  std::string why = move_to(IBV_QPS_RTR);
  return why.empty() ? move_to(IBV_QPS_RTS) : why;
}

std::string CmConnection::move_to(ibv_qp_state state) {
  const Device& device = manager_.device();
  ibv_qp_attr attr{};
  attr.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(id_.get(), &attr, &mask) != 0)
    return std::string("rdma_cm does not know how to connect the queue pair: ") + std::strerror(errno);
  attr.qp_access_flags = qp_.remote_rights();
  attr.timeout = device.options().ack_timeout;
  attr.retry_cnt = device.options().retry_count;
  attr.min_rnr_timer = device.options().min_rnr_timer;
  attr.rnr_retry = peer_.other ? kRnrRetryEndless : rnr_retries(device.options(), peer_);
  set_service(device.options(), &attr.ah_attr);
  if (!peer_.other) agree(&attr);
  if (!peer_.other && state == IBV_QPS_RTR && attr.dest_qp_num != peer_.qp_num)
    return "the queue pair that rdma_cm found is not the one of the handshake";
  const int error = ibv_modify_qp(qp_.get(), &attr, mask);
  return error == 0 ? ""
                    : "the queue pair cannot be connected to " + peer_name() + ": " + std::strerror(error);
}

void CmConnection::agree(ibv_qp_attr* attr) const {
  const Device& device = manager_.device();
  attr->rq_psn = peer_.psn;
  attr->sq_psn = qp_.address().psn;
  const auto mtu = static_cast<ibv_mtu>(std::min(device.port().address.mtu, peer_.mtu));
  attr->path_mtu = std::min(attr->path_mtu, mtu);
  attr->max_dest_rd_atomic = parameters().responder_resources;
  attr->max_rd_atomic = parameters().initiator_depth;
}

void CmConnection::handle(rdma_cm_event_type event, int status) {
  if (phase_ == Phase::down) return;
  std::string why;
  switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (!manager_.is_mine(*id_)) {
        why = peer_name() + " is not reached through " + manager_.device().capabilities().name;
      } else if (rdma_resolve_route(id_.get(), time_left_ms()) != 0) {
        why = "no route to " + peer_name() + ": " + std::strerror(errno);
      }
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      why = connect();
      break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      // The queue pair moves to INIT again, because the partition (P_Key) is known only now.
      why = move_to(IBV_QPS_INIT);
      if (why.empty()) why = move_to_rts();
      if (why.empty() && rdma_establish(id_.get()) != 0) why = refused(errno);
      if (why.empty()) up();
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      answered_ = true;
      // The thread owns the id until its call returns.
      if (phase_ == Phase::accepting ||
          (phase_ == Phase::connecting && (thread_ == nullptr || thread_->result())))
        up();
      break;
    case RDMA_CM_EVENT_REJECTED:
      // The active side has cancelled this request and may send another one.
      if (phase_ == Phase::accepting && ready_) return wait_again();
      why = refused(status);
      break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
      why = peer_name() + " cannot be reached: " + std::strerror(std::abs(status));
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      why = "the peer has closed the connection";
      break;
    case RDMA_CM_EVENT_ADDR_CHANGE:
      // Without this case, the connection would be known to be dead only at the end of all retries.
      why = "the address of " + manager_.device().capabilities().name +
            " has moved to other hardware, as when a bond fails over (RDMA_CM_EVENT_ADDR_CHANGE)";
      break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      why = manager_.device().capabilities().name + " was removed";
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:  // the number of an ended queue pair may be used again
    default:
      break;
  }
  if (!why.empty()) fail(why);
}

std::string CmConnection::refused(int status) const {
  if (status == kRejected || status == ECONNRESET || status == -ECONNRESET)
    return peer_name() +
           (peer_.other ? " refuses the connection" : " has no queue pair that waits for this one");
  if (status == kInvalidServiceId || status == ECONNREFUSED || status == -ECONNREFUSED)
    return "no server listens at " + peer_name();
  return peer_name() + " refuses the connection: " +
         (status < 0 || is_iwarp(peer_) ? std::strerror(std::abs(status))
                                        : "reason " + std::to_string(status));
}

bool CmConnection::offer(const PrivateData& data, IdPtr& id) {
  if (qp_.address().active != 0 || !equal(data.passive, qp_.address().token)) return false;
  const bool again = phase_ == Phase::accepting && ready_;
  if (phase_ != Phase::idle && phase_ != Phase::waiting && !again) return false;
  const Token& expected = phase_ != Phase::idle ? active_word() : id_ != nullptr ? asked_by_ : data.active;
  if (!equal(data.active, expected)) return false;
  asked_by_ = data.active;
  id_.reset();
  id_ = std::move(id);
  id_->context = this;
  if (phase_ != Phase::idle) {
    const std::string why = accept();
    if (!why.empty()) fail(why);
  }
  return true;
}

void CmConnection::call_returned() {
  if (thread_ == nullptr || phase_ != Phase::connecting) return;
  const std::optional<int> result = thread_->result();
  if (!result) return;
  if (*result == 0) {
    if (answered_) up();
    return;
  }
  if (*result != EADDRINUSE && *result != EADDRNOTAVAIL) return fail(refused(*result));
  // rdma_cm has picked a local port that a TCP socket uses, so the attempt is repeated with another port.
  abandon({});
  const std::string why = resolve();
  if (!why.empty()) fail(why);
}

void CmConnection::data_came() {
  if (phase_ == Phase::accepting) rdma_notify(id_.get(), IBV_EVENT_COMM_EST);
}

void CmConnection::expire() {
  if (Attempts::Clock::now() < limit_) {
    // While an address is being resolved, the kernel repeats its queries by itself.
    const std::string why = phase_ == Phase::connecting ? resolve() : "";
    return why.empty() ? set_timer() : fail(why);
  }
  const std::string what = qp_.address().active != 0 ? "no answer from " + peer_name()
                           : ready_                  ? "the peer began to connect, but did not finish"
                                                     : "the peer did not ask for the connection";
  fail(what + qp_.within_limit());
}

void CmConnection::up() {
  if (thread_ != nullptr) thread_->release();
  thread_.reset();
  end(Phase::up);
  qp_.connected();
}

void CmConnection::fail(const std::string& why) {
  // The request came before start() and is gone, so it is dropped.
  if (phase_ == Phase::idle) return id_.reset();
  if (phase_ == Phase::up) return qp_.fail(why);
  end(Phase::down);
  // On iWARP the kernel may still use the id: see close().
  if (thread_ == nullptr) id_.reset();
  qp_.fail(why);
}

void CmConnection::end(Phase phase) {
  phase_ = phase;
  attempts_.forget_limit(*this);
}

void CmConnection::disconnect() {
  if (phase_ == Phase::up || phase_ == Phase::accepting) {
    // In other states the kernel notifies the peer when the id is destroyed.
    if (is_iwarp(peer_) || manager_.can_speak()) rdma_disconnect(id_.get());
  } else if (phase_ != Phase::down && thread_ == nullptr) {
    id_.reset();  // so that the peer does not complete the connection alone
  }
  end(Phase::down);
}

void CmConnection::close(QueueObjects queue) {
  disconnect();
  if (thread_ != nullptr) return abandon(std::move(queue));
  queue.qp.reset();
  let_go();
}

void CmConnection::let_go() {
  // TCP notifies the peer by itself.
  if (is_iwarp(peer_)) return id_.reset();
  manager_.put_away(std::move(id_));
}

void CmConnection::abandon(QueueObjects queue) {
  id_->context = nullptr;
  thread_->abandon({manager_.channel(), std::move(queue), std::move(id_)});
  thread_.reset();
}

std::string CmConnection::peer_name() const { return to_string(IpAddress{peer_.ip, peer_.ip_port, 0}); }

int CmConnection::time_left_ms() const {
  const auto left = limit_ - Attempts::Clock::now();
  return static_cast<int>(
      std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
}

}  // namespace rdma_rpc::fabric::verbs

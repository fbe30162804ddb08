// Creates, connects and ends a queue pair. See queue_pair.h.
#include "fabric/tcp/queue/queue_pair.h"

#include <cstring>
#include <utility>

namespace rdma_rpc::fabric::tcp {

/// Limits how long the passive side waits for its peer.
class QueuePair::AcceptTimeout final : public EventHandler {
 public:
  explicit AcceptTimeout(QueuePair& qp) : qp_(qp) {
    qp_.device_.reactor().set_timeout(*this, qp_.device_.options().connect_timeout_ms);
  }
  ~AcceptTimeout() override { qp_.device_.reactor().cancel_timeout(*this); }
  void ready() override {}
  void expired() override {
    const Endpoint& endpoint = qp_.address_.endpoint;
    qp_.fail("tcp: the peer has not connected to " +
             (endpoint.port == 0 ? "the address of this server" : to_text(endpoint)) + " within " +
             std::to_string(qp_.device_.options().connect_timeout_ms) +
             " ms; can it reach that address, or is something in between?");
  }

 private:
  QueuePair& qp_;
};

QueuePair::QueuePair(Device& device, CompletionQueue& cq, const QpOptions& options, std::uint32_t qp_num,
                     const Address& address)
    : device_(device),
      cq_(cq),
      options_(options),
      address_(address),
      sends_(device, options.send_wr_max),
      receives_(options.recv_wr_max) {
  qp_num_ = qp_num;
  cq_.make_room(options_.send_wr_max + options_.recv_wr_max);
  ++device_.counts().queue_pairs;
}

QueuePair::~QueuePair() {
  say_what_waits();
  if (socket_) part(Op::bye);
  if (early_connection_) reject(std::move(early_connection_));
  cq_.forget(*this, options_.send_wr_max + options_.recv_wr_max);
  device_.forget(*this);
  --device_.counts().queue_pairs;
}

std::string QueuePair::connect(std::span<const std::byte> remote_address) {
  Address peer;
  std::string why;
  if (state_ != QpState::init) {
    why = std::string("connect needs a queue pair in INIT, this one is in ") + to_string(state_);
  } else {
    why = decode(remote_address, &peer);
  }
  if (why.empty() && peer.active == address_.active) {
    why = std::string("both sides are ") + (peer.active ? "active" : "passive") +
          ", so neither would dial the other";
  }
  if (why.empty() && address_.active && peer.endpoint.port == 0)
    why =
        "the peer's address has no IP address and port, and none was given for its server (tcp_address_via)";
  if (why.empty()) {
    state_ = QpState::rtr;
    peer_ = words_ ? words_->peer : peer.token;
    if (address_.active) {
      dialer_ = std::make_unique<Dialer>(device_, *this, peer.endpoint, peer.token, own_word(), peer_);
      why = dialer_->start();
    } else {
      accept_timeout_ = std::make_unique<AcceptTimeout>(*this);
      if (early_connection_) take(std::move(early_connection_));
    }
  }
  if (why.empty()) return {};
  enter_error(Op::bye);
  return "tcp: " + why;
}

void QueuePair::take(IncomingConnection incoming) {
  if (state_ == QpState::init && !early_connection_ && !address_.active) {
    early_connection_ = std::move(incoming);
  } else if (state_ == QpState::rtr && !address_.active && same(incoming.from, peer_)) {
    welcome(std::move(incoming));
  } else {
    reject(std::move(incoming));
  }
}

void QueuePair::welcome(IncomingConnection incoming) {
  const ConnectMessage answer = make_connect_message(ConnectKind::welcome, incoming.from, own_word());
  // The peer may have closed the connection while it waited here. Another connection may arrive later.
  if (send_now(incoming.fd.get(), &answer, sizeof answer)) connected(std::move(incoming.fd));
}

void QueuePair::reject(IncomingConnection incoming) {
  const ConnectMessage answer = make_connect_message(ConnectKind::refused, incoming.from, address_.token);
  send_now(incoming.fd.get(), &answer, sizeof answer);
}

void QueuePair::connected(UniqueFd fd) {
  dialer_.reset();
  accept_timeout_.reset();
  if (!cq_.add(*this, fd.get())) return fail("tcp: the system cannot watch one more connection (epoll_ctl)");
  socket_ = std::move(fd);
  ++device_.counts().open_fds;
  state_ = QpState::rts;
  readable_ = true;
  wants_turn();
  cq_.announce();
}

void QueuePair::note_ready(bool readable, bool writable, bool ends) {
  readable_ |= readable;
  reads_to_end_ |= ends;
  if (writable && out_ == Out::blocked) out_ = Out::free;
  wants_turn();
}

void QueuePair::wants_turn() {
  if (enqueued_ || !socket_) return;
  enqueued_ = true;
  cq_.enqueue(*this);
}

void QueuePair::turn() {
  enqueued_ = false;
  // First send the messages that waited to be coalesced, so that the peer works on them while this side
  // reads. The flush also sends an ack that was not sent with another frame.
  if (acks_.owed || coalesced_ != 0) flush();
  if (may_read()) read();
  if (socket_ && (!batch_.empty() || has_more(LoneAck::later))) flush();
  // The request has failed without a frame, so no flush() has reported it.
  if (std::exchange(lacks_feature_, false)) retire();
  if (may_read() || (acks_.owed && out_ == Out::free)) wants_turn();
}

void QueuePair::polled(bool receive, std::uint64_t send_end, std::uint32_t count) {
  if (receive) {
    receives_.freed(count);
  } else {
    sends_.freed(send_end);
  }
}

void QueuePair::lost(const std::string& why) {
  if (in_ == In::deaf) return peer_is_gone();
  fail("tcp: " + why);
}

bool QueuePair::check_path(PathWatch::Clock::time_point now) {
  if (!socket_) return false;
  const PathWatch::Found found = path_.look(device_.options(), socket_.get(), now);
  if (found == PathWatch::Found::silent) fail(path_.why(socket_.get(), now));
  return found == PathWatch::Found::under_way;
}

/// Closes the socket after a request of the peer has failed. This side learns of the failure from its own
/// next request, as with a NIC.
void QueuePair::peer_is_gone() {
  in_ = In::gone;
  close_socket();
  if (sends_.fail_oldest(WcStatus::retry_exc_err)) retire();
}

void QueuePair::fail(std::string why) {
  if (state_ == QpState::err) return;
  error_ = std::move(why);
  enter_error(Op::bye);
}

void QueuePair::to_error() {
  say_what_waits();
  enter_error(Op::bye);
}

/// Sends the frames that were posted before the end, as far as the socket accepts them.
void QueuePair::say_what_waits() {
  if (coalesced_ != 0 && socket_) flush();
}

void QueuePair::enter_error(Op last_word, const Header* refusal) {
  if (state_ == QpState::err) return;
  state_ = QpState::err;
  dialer_.reset();
  accept_timeout_.reset();
  if (early_connection_) reject(std::move(early_connection_));
  if (socket_) part(last_word, refusal);
  flush_queues();
  cq_.announce();
}

/// Drops the connection and the bytes that are still to be sent. From here on no memory of the user is
/// accessed.
void QueuePair::part(Op last_word, const Header* refusal) {
  if (path_.is_silent()) {
    // Nothing more is sent: no frame would arrive, and the kernel would retransmit for a minute.
    cq_.remove(*this, socket_.get());
    --device_.counts().open_fds;
    device_.lingering_sockets().add_silent(std::move(socket_));
    return batch_.clear();
  }
  if (!batch_.may_be_read(device_.keys(), qp_num_)) {
    // The rest of the frame in progress must not be sent, because its memory may no longer be read. The rest
    // of the frame must not be omitted either. The connection is therefore reset.
    UniqueFd fd = std::move(socket_);
    socket_ = UniqueFd();
    cq_.remove(*this, fd.get());
    --device_.counts().open_fds;
    return reset_connection(fd);
  }
  std::vector<std::byte> words = batch_.rest_of_frame();
  const auto add = [&words](const Header& header) {
    const auto* from = reinterpret_cast<const std::byte*>(&header);
    words.insert(words.end(), from, from + sizeof header);
  };
  if (acks_.owed) add({.op = Op::ack, .number = incoming_.handled()});
  if (refusal != nullptr) add(*refusal);
  add({.op = last_word});
  cq_.remove(*this, socket_.get());
  --device_.counts().open_fds;
  device_.lingering_sockets().add(std::move(socket_), std::move(words));
  batch_.clear();
}

void QueuePair::close_socket() {
  if (!socket_) return;
  cq_.remove(*this, socket_.get());
  --device_.counts().open_fds;
  socket_.reset();
  batch_.clear();
  enqueued_ = false;
}

void QueuePair::flush_queues() {
  while (const SendSlot* slot = sends_.flush()) complete_send(*slot, WcStatus::wr_flush_err);
  while (!receives_.is_empty()) {
    const std::uint32_t together = options_.flush_together ? receives_.unused() : 1;
    complete_receive({.status = WcStatus::wr_flush_err, .opcode = Opcode::recv, .receives = together});
  }
}

}  // namespace rdma_rpc::fabric::tcp

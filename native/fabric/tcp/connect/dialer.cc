// See dialer.h.
#include "fabric/tcp/connect/dialer.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "fabric/tcp/device.h"
#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {
namespace {

/// Limit of further attempts after an attempt that reached another server. With a round-robin load balancer,
/// this number of attempts reaches the right server if there are at most as many servers.
constexpr std::uint32_t kAgainMax = 31;

}  // namespace

Dialer::~Dialer() { hang_up(); }

void Dialer::hang_up() {
  if (!fd_) return;
  device_.reactor().remove(*this, fd_.get());
  fd_.reset();
}

std::string Dialer::start() {
  std::string why = dial();
  if (why.empty()) device_.reactor().set_timeout(*this, device_.options().connect_timeout_ms);
  return why;
}

std::string Dialer::dial() {
  sockaddr_storage name{};
  const socklen_t length = to_sockaddr(endpoint_, &name);
  message_sent_ = false;
  have_ = 0;
  fd_ = UniqueFd(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_) return std::string("no socket: ") + std::strerror(errno);
  std::string why = prepare(fd_.get(), device_.options());
  if (!why.empty()) return why;
  const int result = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), length);
  if ((result != 0 && errno != EINPROGRESS) || !device_.reactor().add(*this, fd_.get(), EPOLLOUT)) {
    return to_text(endpoint_) + " cannot be reached: " + std::strerror(errno);
  }
  return {};
}

void Dialer::ready() {
  if (message_sent_) return listen_to_answer();
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    return qp_.fail("tcp: no server can be reached at " + to_text(endpoint_) + ": " + std::strerror(error));
  }
  if (!send_connect_message())
    qp_.fail("tcp: the connection to " + to_text(endpoint_) + " was lost before it began");
}

bool Dialer::send_connect_message() {
  const ConnectMessage hello = make_connect_message(ConnectKind::hello, to_, from_);
  message_sent_ = true;
  return send_now(fd_.get(), &hello, sizeof hello) && device_.reactor().change(*this, fd_.get(), EPOLLIN);
}

void Dialer::listen_to_answer() {
  const ssize_t got = ::recv(fd_.get(), received_ + have_, sizeof received_ - have_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    return qp_.fail("tcp: " + to_text(endpoint_) + " has closed the connection without an answer" +
                    (got < 0 ? ": " + why_lost(errno) : std::string()));
  }
  have_ += static_cast<std::size_t>(got);
  if (have_ < sizeof received_) return;
  ConnectMessage answer;
  std::memcpy(&answer, received_, sizeof answer);
  answered(answer);
}

void Dialer::answered(const ConnectMessage& answer) {
  const std::string at = to_text(endpoint_);
  if (const char* why = why_not_connect_message(answer)) return qp_.fail("tcp: " + at + ": " + why);
  const bool welcome = answer.kind == ConnectKind::welcome;
  if (!same(answer.to, from_) || !same(answer.from, welcome ? answers_ : to_))
    return qp_.fail("tcp: " + at + " answers as another queue pair than the one dialled");
  switch (answer.kind) {
    case ConnectKind::welcome: {
      device_.reactor().remove(*this, fd_.get());
      return qp_.connected(std::move(fd_));
    }
    case ConnectKind::unknown: {
      if (unknown_++ == kAgainMax) break;
      // The time limit covers all attempts together.
      const std::uint32_t left = device_.reactor().time_left_ms(*this);
      hang_up();
      const std::string why = dial();
      if (!why.empty()) return qp_.fail("tcp: " + why);
      return device_.reactor().set_timeout(*this, left);
    }
    case ConnectKind::hello:
    case ConnectKind::refused:
      return qp_.fail("tcp: " + at + " has refused: the queue pair there expects another peer, or has ended");
  }
  qp_.fail("tcp: none of " + std::to_string(unknown_) + " connections to " + at +
           " has reached the server with that queue pair; does the address lead to many servers?");
}

void Dialer::expired() {
  qp_.fail("tcp: " + to_text(endpoint_) + (message_sent_ ? " has not answered" : " has not been reached") +
           " within " + std::to_string(device_.options().connect_timeout_ms) + " ms");
}

}  // namespace rdma_rpc::fabric::tcp

// See listener.h.
#include "fabric/tcp/connect/listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "fabric/tcp/device.h"
#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {
namespace {

constexpr int kBacklog = 512;
constexpr int kAcceptsPerIteration = 16;
/// Time in milliseconds for which accepting pauses when no descriptor is free. Without a pause the listener
/// would be ready all the time.
constexpr std::uint32_t kPauseMs = 50;

}  // namespace

std::unique_ptr<Listener> Listener::open(Device& device, std::string* error) {
  std::unique_ptr<Listener> listener(new Listener(device));
  const std::string& host = device.options().host;
  if (!parse_host(host, &listener->endpoint_)) {
    *error = "tcp: TcpOptions::host '" + host + "' is not a numeric IP address";
    return nullptr;
  }
  sockaddr_storage name{};
  const socklen_t length = to_sockaddr(listener->endpoint_, &name);
  listener->fd_ = UniqueFd(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = listener->fd_.get();
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&name), length) != 0 || ::listen(fd, kBacklog) != 0 ||
      !local_endpoint(fd, &listener->endpoint_) || !device.reactor().add(*listener, fd, EPOLLIN)) {
    *error = "tcp: cannot listen on TcpOptions::host '" + host + "': " + std::strerror(errno);
    return nullptr;
  }
  return listener;
}

Listener::~Listener() {
  pending_.clear();
  device_.reactor().remove(*this, fd_.get());
}

void Listener::ready() {
  for (int i = 0; i < kAcceptsPerIteration; ++i) {
    UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        device_.reactor().change(*this, fd_.get(), 0);
        device_.reactor().set_timeout(*this, kPauseMs);
      }
      return;
    }
    if (!prepare(fd.get(), device_.options()).empty()) continue;
    if (pending_.size() == device_.options().pending_max) pending_.pop_front();
    pending_.emplace_back(*this, std::move(fd));
    if (!pending_.back().begin()) pending_.pop_back();
  }
}

void Listener::expired() { device_.reactor().change(*this, fd_.get(), EPOLLIN); }

void Listener::leave(const PendingConnection& connection) {
  pending_.remove_if([&](const PendingConnection& other) { return &other == &connection; });
}

Listener::PendingConnection::~PendingConnection() { listener_.device_.reactor().remove(*this, fd_.get()); }

bool Listener::PendingConnection::begin() {
  if (!listener_.device_.reactor().add(*this, fd_.get(), EPOLLIN)) return false;
  listener_.device_.reactor().set_timeout(*this, listener_.device_.options().connect_timeout_ms);
  return true;
}

void Listener::PendingConnection::ready() {
  const ssize_t got = ::recv(fd_.get(), received_ + have_, sizeof received_ - have_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return listener_.leave(*this);
  have_ += static_cast<std::size_t>(got);
  if (have_ < sizeof received_) return;
  ConnectMessage message;
  std::memcpy(&message, received_, sizeof message);
  if (why_not_connect_message(message) == nullptr && message.kind == ConnectKind::hello)
    hand_to_queue_pair(message);
  listener_.leave(*this);
}

void Listener::PendingConnection::hand_to_queue_pair(const ConnectMessage& message) {
  Device& device = listener_.device_;
  device.reactor().remove(*this, fd_.get());
  device.hand_to_queue_pair(std::move(fd_), message);
}

void Listener::PendingConnection::expired() { listener_.leave(*this); }

}  // namespace rdma_rpc::fabric::tcp

// See lingering_sockets.h.
#include "fabric/tcp/connect/lingering_sockets.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "fabric/tcp/connect/socket.h"

namespace rdma_rpc::fabric::tcp {
namespace {

/// Time in milliseconds for which to try to send. The time is long enough to send the content of a send
/// buffer, and so short that a silent peer does not keep a descriptor for long.
constexpr std::uint32_t kLimitMs = 5'000;
/// Time in milliseconds to wait before a reset. The time is long enough for the reason of the end to arrive,
/// and too short for another retransmission of lost bytes.
constexpr std::uint32_t kSilentMs = 1'000;
constexpr std::size_t kDrainBytes = 64 << 10;
/// Limit of reads on one connection before the other connections have their turn.
constexpr int kDrainsPerIteration = 16;

}  // namespace

LingeringSockets::~LingeringSockets() = default;

LingeringSockets::Socket& LingeringSockets::keep(UniqueFd fd, std::vector<std::byte> bytes) {
  if (open_.size() == kMax) open_.pop_front();
  return open_.emplace_back(*this, std::move(fd), std::move(bytes));
}

void LingeringSockets::add(UniqueFd fd, std::vector<std::byte> bytes) {
  if (!keep(std::move(fd), std::move(bytes)).begin()) open_.pop_back();
}

void LingeringSockets::add_silent(UniqueFd fd) {
  // The option is set now, so that the socket is reset however it is closed, including the end of the device.
  reset_on_close(fd.get());
  keep(std::move(fd), {}).wait();
}

LingeringSockets::Socket::~Socket() { all_.reactor_.remove(*this, fd_.get()); }

bool LingeringSockets::Socket::begin() {
  if (!send_rest()) return false;
  const std::uint32_t events = sent_ < bytes_.size() ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (!all_.reactor_.add(*this, fd_.get(), events)) return false;
  all_.reactor_.set_timeout(*this, kLimitMs);
  return true;
}

void LingeringSockets::Socket::wait() { all_.reactor_.set_timeout(*this, kSilentMs); }

bool LingeringSockets::Socket::send_rest() {
  while (sent_ < bytes_.size()) {
    const ssize_t sent =
        ::send(fd_.get(), bytes_.data() + sent_, bytes_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<std::size_t>(sent);
  }
  return ::shutdown(fd_.get(), SHUT_WR) == 0;
}

bool LingeringSockets::Socket::drain() {
  std::byte scrap[kDrainBytes];
  for (int i = 0; i < kDrainsPerIteration; ++i) {
    const ssize_t got = ::recv(fd_.get(), scrap, sizeof scrap, MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
  }
  return true;
}

void LingeringSockets::Socket::ready() {
  const bool sending = sent_ < bytes_.size();
  bool open = drain();
  if (open && sending) {
    open = send_rest();
    if (open && sent_ == bytes_.size()) open = all_.reactor_.change(*this, fd_.get(), EPOLLIN);
  }
  if (!open) expired();
}

void LingeringSockets::Socket::expired() {
  all_.open_.remove_if([this](const Socket& other) { return &other == this; });
}

}  // namespace rdma_rpc::fabric::tcp

// See acceptor.h.
#include "fabric/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "fabric/rights.h"
#include "fabric/socket_relay.h"

namespace rdma_rpc::fabric {
namespace {

/// Limit of the handed-off connections that wait for the thread of their device.
constexpr std::size_t kArrivedMax = 1024;

/// This object lives as long as the process, because threads end in any order.
struct Acceptors {
  std::mutex mutex;
  std::map<std::uint32_t, Acceptor*> of;
};
Acceptors& acceptors() {
  static Acceptors& only = *new Acceptors;
  return only;
}

std::uint32_t number_in(const Token& token) {
  std::uint32_t number = 0;
  std::memcpy(&number, token.data(), sizeof number);
  return number;
}

}  // namespace

std::unique_ptr<Acceptor> Acceptor::open(Reactor& reactor, Host host, std::string* error) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(reactor, std::move(host)));
  acceptor->bell_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // The number is random, because it distinguishes the servers behind one address. (0 marks an acceptor that
  // is not in the table.)
  bool good = acceptor->bell_ && reactor.add(*acceptor, acceptor->bell_.get(), EPOLLIN);
  const std::lock_guard lock(acceptors().mutex);
  while (good && acceptor->number_ == 0) {
    std::uint32_t number = 0;
    good = ::getrandom(&number, sizeof number, 0) == static_cast<ssize_t>(sizeof number);
    if (good && number != 0 && acceptors().of.try_emplace(number, acceptor.get()).second)
      acceptor->number_ = number;
  }
  if (good) return acceptor;
  *error = std::string("connections cannot be accepted: ") + std::strerror(errno);
  // The destructor takes the lock that is held here. The destructor therefore removes the table entry, and
  // only the handler is removed here.
  reactor.remove(*acceptor, acceptor->bell_.get());
  return nullptr;
}

Acceptor::~Acceptor() {
  if (number_ == 0) return;
  reactor_.remove(*this, bell_.get());
  const std::lock_guard lock(acceptors().mutex);
  acceptors().of.erase(number_);
}

void Acceptor::mark(Token* token) const { std::memcpy(token->data(), &number_, sizeof number_); }

bool Acceptor::hand_off(UniqueFd& fd, const ConnectMessage& message) {
  const std::lock_guard lock(acceptors().mutex);
  const auto found = acceptors().of.find(number_in(message.to));
  if (found == acceptors().of.end() || found->second->arrived_.size() == kArrivedMax) return false;
  Acceptor& acceptor = *found->second;
  acceptor.arrived_.push_back({std::move(fd), message});
  const std::uint64_t one = 1;
  // The write fails only when the counter overflows, after 2^64 writes.
  [[maybe_unused]] const ssize_t wrote = ::write(acceptor.bell_.get(), &one, sizeof one);
  return true;
}

void Acceptor::ready() {
  std::uint64_t rung = 0;
  // The read cannot fail, because the counter is not zero and only this thread reads it.
  [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rung, sizeof rung);
  std::vector<Arrival> arrived;
  {
    const std::lock_guard lock(acceptors().mutex);
    arrived.swap(arrived_);
  }
  for (Arrival& one : arrived) host_(std::move(one.fd), one.message);
}

std::string hand_off(int fd, std::span<const std::byte> message) {
  ConnectMessage hello;
  if (message.size() != sizeof hello) return "a connect message must have 40 bytes";
  std::memcpy(&hello, message.data(), sizeof hello);
  if (const char* why = why_not_connect_message(hello)) return why;
  if (hello.kind != ConnectKind::hello) return "a connection began with an answer";
  UniqueFd own = relayed_connection(fd);
  if (!own) own = UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return std::string("no descriptor for a connection: ") + std::strerror(errno);
  if (Acceptor::hand_off(own, hello)) return {};
  const ConnectMessage answer = make_connect_message(ConnectKind::unknown, hello.from, hello.to);
  send_now(own.get(), &answer, sizeof answer);
  close_elsewhere(std::move(own));
  return "no session of this process expects this connection";
}

}  // namespace rdma_rpc::fabric

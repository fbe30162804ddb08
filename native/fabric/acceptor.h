// The passive side without a listener: connections come from whoever listens in this process, perhaps on
// another thread (a handoff), and are found by the first bytes of the token that they ask for. One table of
// the process has the acceptors of all devices. Used by the fabrics that connect by sockets (tcp, shm by
// descriptors), and by the binding, which has what JS accepts. An acceptor belongs to its device's thread;
// hand_off() is for any thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/greeting.h"
#include "fabric/reactor.h"

namespace rdma_rpc::fabric {

class Acceptor final : public EventHandler {
 public:
  /// Gets each connection that has come, and what it has said.
  using Host = std::function<void(UniqueFd fd, const Greeting& greeting)>;

  /// Null, and why, when the system refuses.
  static std::unique_ptr<Acceptor> open(Reactor& reactor, Host host, std::string* error);
  ~Acceptor() override;

  /// From now on this token leads here.
  void mark(Token* token) const;
  /// From any thread. False: the token leads to no acceptor.
  static bool hand_off(UniqueFd& fd, const Greeting& greeting);

  void ready() override;
  void expired() override {}

 private:
  struct Arrival {
    UniqueFd fd;
    Greeting greeting;
  };

  Acceptor(Reactor& reactor, Host host) : reactor_(reactor), host_(std::move(host)) {}

  Reactor& reactor_;
  const Host host_;
  UniqueFd bell_;
  std::uint32_t number_ = 0;
  std::vector<Arrival> arrived_;  ///< under the table's lock
};

/// From any thread: `fd` is an accepted connection that has said `greeting`, and nothing has been sent on it.
/// It is duplicated, and goes to the queue pair of any device of this process that it asks for. Empty, or why
/// it does not; the peer has been told then. Either way the caller closes its own descriptor.
std::string hand_off(int fd, std::span<const std::byte> greeting);

}  // namespace rdma_rpc::fabric

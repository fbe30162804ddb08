// Accepts connections on the passive side without a listening socket. Another part of this process accepts
// connections, perhaps on another thread, and hands them off. The first bytes of each connection contain a
// token, which names the queue pair that the connection asks for. One table of the process lists the
// acceptors of all devices. This file is used by the fabrics that connect by sockets (tcp, and shm with
// passed descriptors), and by the binding for the connections that JS accepts. An acceptor belongs to the
// thread of its device; hand_off() may be called on any thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/connect_message.h"
#include "fabric/reactor.h"

namespace rdma_rpc::fabric {

class Acceptor final : public EventHandler {
 public:
  /// Receives each handed-off connection with its connect message.
  using Host = std::function<void(UniqueFd fd, const ConnectMessage& message)>;

  /// Returns null, with the reason in `error`, when the system refuses resources.
  static std::unique_ptr<Acceptor> open(Reactor& reactor, Host host, std::string* error);
  ~Acceptor() override;

  /// Writes this acceptor's number into the token, so that connections with this token are handed to it.
  void mark(Token* token) const;
  /// Hands a connection to the acceptor that the token names. May be called on any thread. Returns false when
  /// the token names no acceptor.
  static bool hand_off(UniqueFd& fd, const ConnectMessage& message);

  void ready() override;
  void expired() override {}

 private:
  struct Arrival {
    UniqueFd fd;
    ConnectMessage message;
  };

  Acceptor(Reactor& reactor, Host host) : reactor_(reactor), host_(std::move(host)) {}

  Reactor& reactor_;
  const Host host_;
  UniqueFd bell_;
  std::uint32_t number_ = 0;
  std::vector<Arrival> arrived_;  ///< protected by the table's lock
};

/// Hands over an accepted connection whose peer has sent `message`, and on which this side has sent nothing
/// yet. May be called on any thread. The descriptor is duplicated. The duplicate goes to the queue pair that
/// the message names, on any device of this process. Returns "", or an error text when no queue pair accepts
/// the connection; the peer has been notified in that case. In both cases the caller closes its own
/// descriptor.
std::string hand_off(int fd, std::span<const std::byte> message);

}  // namespace rdma_rpc::fabric

// Handles connections of queue pairs like a server's listener: it accepts them, reads the first bytes of
// each, and hands the connection over. Tests use this file, on the thread of the devices or on another
// thread.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <vector>

#include "fabric/acceptor.h"

namespace rdma_rpc::fabric::test {

class IncomingConnections {
 public:
  /// Handles all pending events of `listener`. Returns the result of hand_off() for the last connection whose
  /// connect message was read, or "none".
  std::string admit(int listener) {
    while (UniqueFd fd{::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)}) {
      incoming_.push_back({std::move(fd)});
    }
    std::string result = "none";
    std::erase_if(incoming_, [&result](Incoming& incoming) {
      const ssize_t got = ::recv(incoming.fd.get(), incoming.said + incoming.have,
                                 sizeof incoming.said - incoming.have, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) return false;
      if (got <= 0) return true;
      incoming.have += static_cast<std::size_t>(got);
      if (incoming.have < sizeof incoming.said) return false;
      result = hand_off(incoming.fd.get(), incoming.said);
      return true;
    });
    return result;
  }

 private:
  struct Incoming {
    UniqueFd fd;
    std::byte said[kConnectMessageBytes]{};
    std::size_t have = 0;
  };
  std::vector<Incoming> incoming_;
};

}  // namespace rdma_rpc::fabric::test

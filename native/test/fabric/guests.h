// Does what a server's listener does with connections of queue pairs: accepts them, reads the first bytes of
// each, and hands it over. For tests, which call it on the thread of the devices or on another.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <vector>

#include "fabric/acceptor.h"

namespace rdma_rpc::fabric::test {

class Guests {
 public:
  /// Handles all pending events of `listener`. Returns the result of hand_off() for the last connection whose
  /// connect message was read, or "nobody".
  std::string admit(int listener) {
    while (UniqueFd fd{::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)}) {
      guests_.push_back({std::move(fd)});
    }
    std::string told = "nobody";
    std::erase_if(guests_, [&told](Guest& guest) {
      const ssize_t got =
          ::recv(guest.fd.get(), guest.said + guest.have, sizeof guest.said - guest.have, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) return false;
      if (got <= 0) return true;
      guest.have += static_cast<std::size_t>(got);
      if (guest.have < sizeof guest.said) return false;
      told = hand_off(guest.fd.get(), guest.said);
      return true;
    });
    return told;
  }

 private:
  struct Guest {
    UniqueFd fd;
    std::byte said[kConnectMessageBytes]{};
    std::size_t have = 0;
  };
  std::vector<Guest> guests_;
};

}  // namespace rdma_rpc::fabric::test

// Connections whose queue pair is in ERR or gone. Each still has a few bytes to say: the rest of a frame
// under way, why a request was refused, good-bye. Closing at once would lose them, since a socket that is
// closed with input unread is reset. So it is drained until the peer closes, or a time is up. On the device's
// thread.
#pragma once

#include <list>
#include <vector>

#include "fabric/reactor.h"

namespace rdma_rpc::fabric::tcp {

class LingeringSockets {
 public:
  explicit LingeringSockets(Reactor& reactor) : reactor_(reactor) {}
  ~LingeringSockets();

  /// Beyond kMax of them the oldest is closed.
  void add(UniqueFd fd, std::vector<std::byte> bytes);
  /// One whose path swallows what is sent: nothing more is said, and it is reset. Not at once: where the
  /// reset arrives, it would come before the reason, which goes by the control connection.
  void add_silent(UniqueFd fd);

 private:
  static constexpr std::size_t kMax = 256;

  class Socket final : public EventHandler {
   public:
    Socket(LingeringSockets& all, UniqueFd fd, std::vector<std::byte> bytes)
        : all_(all), fd_(std::move(fd)), bytes_(std::move(bytes)) {}
    ~Socket() override;
    bool begin();
    /// Until it is reset.
    void wait();
    void ready() override;
    void expired() override;

   private:
    /// False: the connection is over.
    bool send_rest();
    bool drain();

    LingeringSockets& all_;
    UniqueFd fd_;
    std::vector<std::byte> bytes_;
    std::size_t said_ = 0;
  };

  Socket& keep(UniqueFd fd, std::vector<std::byte> bytes);

  Reactor& reactor_;
  std::list<Socket> open_;
};

}  // namespace rdma_rpc::fabric::tcp

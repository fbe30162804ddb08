// Keeps connections whose queue pair is in ERR or destroyed, and which still have a few bytes to send. The
// bytes are the rest of a started frame, the reason why a request was refused, or a BYE frame. If they were
// closed at once, these bytes would be lost, because a socket that is closed with unread input is reset. Each
// connection is therefore drained until the peer closes it or its time is over. This code runs on the
// device's thread.
#pragma once

#include <list>
#include <vector>

#include "fabric/reactor.h"

namespace rdma_rpc::fabric::tcp {

class LingeringSockets {
 public:
  explicit LingeringSockets(Reactor& reactor) : reactor_(reactor) {}
  ~LingeringSockets();

  /// Beyond kMax connections the oldest is closed.
  void add(UniqueFd fd, std::vector<std::byte> bytes);
  /// Adds a connection whose packets are lost on the way. Nothing more is sent on such a connection, and it
  /// is reset after a delay. Because of the delay, the reset, if it arrives at all, does not arrive before
  /// the reason, which is sent on the sideband connection.
  void add_silent(UniqueFd fd);

 private:
  static constexpr std::size_t kMax = 256;

  class Socket final : public EventHandler {
   public:
    Socket(LingeringSockets& all, UniqueFd fd, std::vector<std::byte> bytes)
        : all_(all), fd_(std::move(fd)), bytes_(std::move(bytes)) {}
    ~Socket() override;
    bool begin();
    /// Waits until the connection is reset.
    void wait();
    void ready() override;
    void expired() override;

   private:
    /// These functions return false when the connection is over.
    bool send_rest();
    bool drain();

    LingeringSockets& all_;
    UniqueFd fd_;
    std::vector<std::byte> bytes_;
    std::size_t sent_ = 0;
  };

  Socket& keep(UniqueFd fd, std::vector<std::byte> bytes);

  Reactor& reactor_;
  std::list<Socket> open_;
};

}  // namespace rdma_rpc::fabric::tcp

// Implements the listener of the passive side. The listener accepts connections, reads which queue pair each
// connection wants, and hands each connection to that queue pair. Until then a connection is unauthenticated,
// so the number of such connections and the time of each are limited. This code runs on the device's thread.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "fabric/reactor.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

/// A connection that has named the queue pair that it wants.
struct IncomingConnection {
  UniqueFd fd;
  Token from{};
  explicit operator bool() const { return static_cast<bool>(fd); }
};

class Device;

class Listener final : public EventHandler {
 public:
  /// Returns null, with the reason in `error`, when it cannot listen on the address.
  static std::unique_ptr<Listener> open(Device& device, std::string* error);
  ~Listener() override;
  const Endpoint& endpoint() const { return endpoint_; }

  void ready() override;
  void expired() override;  ///< ends the pause that began when no descriptor was free

 private:
  class PendingConnection final : public EventHandler {
   public:
    PendingConnection(Listener& listener, UniqueFd fd) : listener_(listener), fd_(std::move(fd)) {}
    ~PendingConnection() override;
    bool begin();
    void ready() override;
    void expired() override;

   private:
    void hand_to_queue_pair(const ConnectMessage& message);

    Listener& listener_;
    UniqueFd fd_;
    std::byte received_[sizeof(ConnectMessage)];
    std::size_t have_ = 0;
  };

  explicit Listener(Device& device) : device_(device) {}
  void leave(const PendingConnection& connection);

  Device& device_;
  UniqueFd fd_;
  Endpoint endpoint_;
  std::list<PendingConnection> pending_;
};

}  // namespace rdma_rpc::fabric::tcp

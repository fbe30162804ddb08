// Connects the active side. The dialer opens a connection to the peer, sends the connect message, which names
// the wanted queue pair, and waits for the answer. Behind a proxy or a load balancer, the connection may
// reach another server, which does not know that queue pair. The dialer then tries again, because the next
// connection may reach the right server. The queue pair owns this object and uses it on the device's thread.
#pragma once

#include <string>

#include "fabric/reactor.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class Device;
class QueuePair;

class Dialer final : public EventHandler {
 public:
  /// `answers` is the token that the intended peer sends in its answer.
  Dialer(Device& device, QueuePair& qp, const Endpoint& endpoint, const Token& to, const Token& from,
         const Token& answers)
      : device_(device), qp_(qp), endpoint_(endpoint), to_(to), from_(from), answers_(answers) {}
  ~Dialer() override;

  /// Returns "", or why the connection attempt cannot even begin. After "" it continues by itself, and ends
  /// with QueuePair::connected() or fail().
  std::string start();

  void ready() override;
  void expired() override;

 private:
  std::string dial();
  void hang_up();
  bool send_connect_message();
  void listen_to_answer();
  void answered(const ConnectMessage& answer);

  Device& device_;
  QueuePair& qp_;
  const Endpoint endpoint_;
  const Token to_, from_, answers_;
  UniqueFd fd_;
  bool message_sent_ = false;
  std::byte received_[sizeof(ConnectMessage)];
  std::size_t have_ = 0;
  std::uint32_t unknown_ = 0;  ///< number of servers that did not know the queue pair
};

}  // namespace rdma_rpc::fabric::tcp

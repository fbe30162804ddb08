// Connects one queue pair to its peer without rdma_cm, with the content of the address blobs alone. When the
// queue pair moves to RTR, the kernel resolves the peer's hardware address and waits a second if no host has
// the GID. Therefore that call has a thread of its own. Everything else runs on the device's thread.
#pragma once

#include "fabric/verbs/connect/connect_thread.h"
#include "fabric/verbs/connect/connection.h"

namespace rdma_rpc::fabric::verbs {

class Device;
class QueuePair;

class SidebandConnection final : public Connection {
 public:
  SidebandConnection(Device& device, QueuePair& qp);
  ~SidebandConnection() override;
  std::string start(const Address& peer) override;
  std::string go_to_rts() override;
  bool busy() const override { return thread_ != nullptr; }
  void disconnect() override;
  void close(QueueObjects queue) override;
  void call_returned() override;
  void expire() override;

 private:
  std::string finish(int error);
  std::string why_not_rtr(int error) const;
  std::string move_to_rts();

  Device& device_;
  QueuePair& qp_;
  Address peer_;
  std::shared_ptr<ConnectThread> thread_;
  bool given_up_ = false;
};

}  // namespace rdma_rpc::fabric::verbs

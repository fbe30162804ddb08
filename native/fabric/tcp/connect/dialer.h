// The active side's way to its peer: connects, says which queue pair it wants, and waits for the answer.
// Behind a proxy or a balancer the connection may end at another server, which does not know that queue pair:
// then it dials again, since the next connection may end at the right one. Owned by the queue pair; on the
// device's thread.
#pragma once

#include <string>

#include "fabric/reactor.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class Device;
class QueuePair;

class Dialer final : public EventHandler {
 public:
  /// `answers`: what whoever is meant calls itself.
  Dialer(Device& device, QueuePair& qp, const Place& place, const Token& to, const Token& from,
         const Token& answers)
      : device_(device), qp_(qp), place_(place), to_(to), from_(from), answers_(answers) {}
  ~Dialer() override;

  /// Empty, or why the connection cannot even begin. Goes on by itself from here, to QueuePair::connected()
  /// or fail().
  std::string start();

  void ready() override;
  void expired() override;

 private:
  std::string dial();
  void hang_up();
  bool greet();
  void listen_to_answer();
  void answered(const Greeting& answer);

  Device& device_;
  QueuePair& qp_;
  const Place place_;
  const Token to_, from_, answers_;
  UniqueFd fd_;
  bool greeted_ = false;
  std::byte said_[sizeof(Greeting)];
  std::size_t have_ = 0;
  std::uint32_t unknown_ = 0;  ///< servers that did not know the queue pair
};

}  // namespace rdma_rpc::fabric::tcp

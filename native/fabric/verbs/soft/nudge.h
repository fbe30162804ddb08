// A peer's driver may have forgotten what has arrived. Every iWARP queue pair of the side that asks for the
// connection has one of these, since nobody can tell from here what the peer runs on. Called by the queue
// pair's watchdog once a second, never on the path of a request; on the device's thread.
//
// The first message of an active side stays in the peer's socket if that is soft-iWARP (driver.h has the
// kernel versions) and was slow to accept: its siw_accept() answers before it takes over the socket, and
// whatever comes next has all of it read. So an active side that has sent something and has received nothing
// yet sends an empty WRITE, after 1, 2, 4, 8 and 16 seconds. Once something was received, the peer listens.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric::verbs {
class QueuePair;
}

namespace rdma_rpc::fabric::verbs::soft {

class Nudge {
 public:
  /// Requests that it may have with the device beside those of the queue pair's user.
  static constexpr std::uint32_t kSendsMax = 5;

  explicit Nudge(QueuePair& qp) : qp_(qp) {}
  /// A second has passed. False: there is nothing to look after.
  bool second();

 private:
  QueuePair& qp_;
  std::uint32_t unheard_s_ = 0;  ///< since it has posted something, as far as it had to look
};

}  // namespace rdma_rpc::fabric::verbs::soft

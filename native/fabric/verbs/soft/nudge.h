// Works around a peer whose driver may have forgotten received data. Every iWARP queue pair of the active
// side has this workaround, because the active side cannot know the peer's driver. The queue pair's watchdog
// calls it once a second, on the device's thread and never on the path of a request.
//
// The first message of the active side may stay in the socket of a peer that uses soft-iWARP (driver.h has
// the kernel versions) and was slow to accept. The reason is that siw_accept() answers before it takes over
// the socket, and reads only when more data comes. Therefore, an active side that has sent something and
// received nothing yet sends an empty WRITE after 1, 2, 4, 8 and 16 seconds. When anything is received, the
// peer has begun to read.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric::verbs {
class QueuePair;
}

namespace rdma_rpc::fabric::verbs::soft {

class Nudge {
 public:
  /// Number of requests that this workaround may have on the device in addition to the user's requests.
  static constexpr std::uint32_t kSendsMax = 5;

  explicit Nudge(QueuePair& qp) : qp_(qp) {}
  /// Sends a WRITE to the peer, if it needs one, each second. Returns false when the peer needs no further
  /// WRITE.
  bool second();

 private:
  QueuePair& qp_;
  std::uint32_t unheard_s_ = 0;  ///< seconds since this side posted something, while it has received nothing
};

}  // namespace rdma_rpc::fabric::verbs::soft

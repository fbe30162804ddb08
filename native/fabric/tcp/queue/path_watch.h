// Whether what a queue pair sends still arrives. A firewall that has forgotten the connection, or an MTU that
// is smaller on the way than at the ends, swallows packets of one connection and tells nobody, while the
// connection of the handshake lives. The kernel knows: it sends the same bytes again and again and is never
// answered. A peer that is stopped or slow is another matter: its kernel answers.
//
// Once a second, and only of queue pairs that have sent something. On the device's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "fabric/reactor.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::fabric::tcp {

class Device;

/// What the kernel says. Without an answer of the system it is as if all had arrived.
PathState kernel_path_state(int fd);

/// Of one queue pair.
class PathWatch {
 public:
  using Clock = Reactor::Clock;
  enum class Found : std::uint8_t {
    nothing,    ///< all has arrived
    under_way,  ///< look again
    silent,     ///< nothing arrives any more
  };

  /// Bytes have been given to the kernel: the hot path.
  void sent() { sent_ = true; }
  Found look(const TcpOptions& options, int fd, Clock::time_point now);
  bool is_silent() const { return silent_; }
  /// For people, of a path that is silent.
  std::string why(int fd, Clock::time_point now) const;

 private:
  bool sent_ = false;
  bool watched_ = false;  ///< something has been sent, and may not have arrived
  bool suspect_ = false;  ///< the look before has found too many repetitions already
  bool silent_ = false;
  PathState state_;
  Clock::time_point answered_{};  ///< the last look that found no repetition
};

/// Of the device: when the queue pairs are looked at.
class PathTimer final : public EventHandler {
 public:
  explicit PathTimer(Device& device) : device_(device) {}
  ~PathTimer() override;

  /// A queue pair has sent something: the hot path.
  void sent() { sent_ = true; }
  /// Before a sleep, and now and then while polling.
  void start() {
    if (sent_ && !running_) run();
  }
  void ready() override {}
  void expired() override;

 private:
  void run();

  Device& device_;
  bool sent_ = false, running_ = false;
};

}  // namespace rdma_rpc::fabric::tcp

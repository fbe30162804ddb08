// Whether what a queue pair sends still arrives. A firewall that has forgotten the connection, or an MTU that
// is smaller on the way than at the ends, swallows packets of one connection and tells nobody, while the
// connection of the handshake lives. The kernel knows: it sends the same bytes again and again and is never
// answered. A peer that is stopped or slow is another matter: its kernel answers.
//
// Once a second, and only of queue pairs that have sent something; of thousands, some at a time, since each
// look costs system calls. On the device's thread.
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

/// Watches the path of one queue pair.
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
  /// The next look asks the kernel.
  bool asks() const { return watched_; }
  /// For people, of a path that is silent.
  std::string why(int fd, Clock::time_point now) const;

 private:
  bool sent_ = false;
  bool watched_ = false;             ///< something has been sent, and may not have arrived
  bool suspect_ = false;             ///< the look before has found too many repetitions already
  std::uint32_t slept_through_ = 0;  ///< repetitions while this process stood still
  bool silent_ = false;
  PathState state_;
  Clock::time_point answered_{};  ///< the last look that found no repetition
  Clock::time_point looked_{};
};

/// Decides when the queue pairs of a device are looked at.
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
  /// A queue pair has gone, and those behind it have moved up: one of them may have been missed.
  void forgot() { again_ = again_ || next_ != 0; }
  void ready() override {}
  void expired() override;

 private:
  void run();

  Device& device_;
  bool sent_ = false, running_ = false;
  bool again_ = false;    ///< one that has been looked at in this round needs another look
  std::size_t next_ = 0;  ///< of the queue pairs, to be looked at in this round
};

}  // namespace rdma_rpc::fabric::tcp

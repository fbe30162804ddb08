// Checks whether a queue pair's bytes still reach the peer. Two faults silently drop packets of one
// connection while the connection of the handshake stays alive: a firewall that has forgotten the connection,
// and an MTU that is smaller on the way than at the ends. The kernel's counters show this: it resends the
// same bytes again and again without an answer. A stopped or slow peer is different, because its kernel
// answers.
//
// The check runs once a second, and only for queue pairs that have sent something. When there are thousands
// of such queue pairs, only some are checked at a time, because each check costs system calls. This code runs
// on the device's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "fabric/reactor.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::fabric::tcp {

class Device;

/// Returns the kernel's information about the socket. If the system does not answer, returns a state as if
/// everything had arrived.
PathState kernel_path_state(int fd);

/// Watches the path of one queue pair.
class PathWatch {
 public:
  using Clock = Reactor::Clock;
  enum class Found : std::uint8_t {
    nothing,    ///< everything has arrived
    under_way,  ///< bytes are in transit; check again
    silent,     ///< packets no longer arrive
  };

  /// Records that bytes have been given to the kernel. This function is on the hot path.
  void sent() { sent_ = true; }
  Found look(const TcpOptions& options, int fd, Clock::time_point now);
  bool is_silent() const { return silent_; }
  /// Returns whether the next check asks the kernel.
  bool asks() const { return watched_; }
  /// Returns the error text for a silent path.
  std::string why(int fd, Clock::time_point now) const;

 private:
  bool sent_ = false;
  bool watched_ = false;             ///< bytes were sent that may not have arrived
  bool suspect_ = false;             ///< the previous check already found too many retransmissions
  std::uint32_t slept_through_ = 0;  ///< retransmissions made while this process was stopped
  bool silent_ = false;
  PathState state_;
  Clock::time_point answered_{};  ///< time of the last check without retransmissions
  Clock::time_point looked_{};
};

/// Schedules the checks of a device's queue pairs.
class PathTimer final : public EventHandler {
 public:
  explicit PathTimer(Device& device) : device_(device) {}
  ~PathTimer() override;

  /// Records that a queue pair has sent something. This function is on the hot path.
  void sent() { sent_ = true; }
  /// Starts the timer if needed. This function is called before a sleep, and from time to time while polling.
  void start() {
    if (sent_ && !running_) run();
  }
  /// Must be called when a queue pair has been removed from the list. The queue pairs behind it have moved
  /// up, so one of them may have been skipped.
  void forgot() { again_ = again_ || next_ != 0; }
  void ready() override {}
  void expired() override;

 private:
  void run();

  Device& device_;
  bool sent_ = false, running_ = false;
  bool again_ = false;    ///< a queue pair that was checked in this round needs another check
  std::size_t next_ = 0;  ///< index of the next queue pair to check in this round
};

}  // namespace rdma_rpc::fabric::tcp

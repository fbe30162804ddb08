// Looks after requests that a device never completes. A device ends each one in the time that its retries
// take; a driver in software does not always (soft/), and a NIC's firmware may fail as well. Once a second,
// while there are requests: a queue pair whose oldest one is too old goes to ERR, after what soft/ has to try
// first. On the device's thread.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric::verbs {

class Device;

class Watchdog {
 public:
  explicit Watchdog(Device& device) : device_(device) {}
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  /// False: the system has no timer for it.
  bool open();

  /// Readable when progress() has something to do.
  int fd() const { return timer_; }
  /// A request is posted: the hot path.
  void posted() { posted_ = true; }
  /// Before a sleep, and now and then while polling.
  void start() {
    if (posted_ && !running_) run();
  }
  void progress();
  /// A request may take that long, in seconds; for tests, and for people.
  static std::uint32_t limit_s(std::uint8_t ack_timeout, std::uint8_t retry_count);

 private:
  void run();

  Device& device_;
  int timer_ = -1;
  bool posted_ = false, running_ = false;
};

}  // namespace rdma_rpc::fabric::verbs

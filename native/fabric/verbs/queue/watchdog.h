// Detects requests that a device never completes. A device should end each request within the time of its
// retries. However, software drivers do not always do that (soft/), and a NIC's firmware may fail, too. While
// requests are outstanding, each queue pair is checked once a second. If the oldest request is too old and
// the remedies of soft/ did not help, the queue pair goes to ERR. This code runs on the device's thread.
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
  /// Returns false when the system has no timer for it.
  bool open();

  /// Returns a descriptor that is readable when progress() has work to do.
  int fd() const { return timer_; }
  /// Records that a request is posted. This function is on the hot path.
  void posted() { posted_ = true; }
  /// Starts the timer if needed. This function is called before a sleep, and now and then while polling.
  void start() {
    if (posted_ && !running_) run();
  }
  void progress();
  /// Returns the number of seconds that a request may take, for tests and error texts.
  static std::uint32_t limit_s(std::uint8_t ack_timeout, std::uint8_t retry_count);

 private:
  void run();

  Device& device_;
  int timer_ = -1;
  bool posted_ = false, running_ = false;
};

}  // namespace rdma_rpc::fabric::verbs

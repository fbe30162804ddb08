// Looks after requests that a device never completes. A device ends each one in the time that its retries
// take; soft-RoCE does not always (see holding.cc), and a NIC's firmware may fail as well. Once a second,
// while there are requests: a queue pair whose oldest one is too old goes to ERR. On the device's thread.
//
// Soft-RoCE's requester goes to sleep before it says what it waits for (rxe_requester(): wait_fence,
// wait_psn, need_req_skb), so it may miss what it waits for, and then sleeps until the next doorbell; no
// timer runs. When the oldest request has not moved from one look to the next, it is rung again
// (Quirks::oversleeps).
//
// On iWARP the peer may have forgotten what has arrived, so a side that has not heard from it is looked after
// too. Both in forgotten.cc.
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

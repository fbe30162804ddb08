// Waits for the sockets of a device that do not belong to a connected queue pair, because they are not
// connected yet or no longer connected. The reactor also watches the time limits of these sockets. Every
// completion queue of the device watches the reactor's one epoll descriptor. This file is used by the fabrics
// that connect by sockets (tcp, and shm with passed descriptors), on the device's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric {

/// The owner of one watched socket. The handler is called at most once for each event, and may remove or
/// destroy itself in that call.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void ready() = 0;
  virtual void expired() = 0;
};

class Reactor {
 public:
  using Clock = std::chrono::steady_clock;

  /// Creates the descriptors. Returns false when the system refuses.
  bool open();
  int fd() const { return epoll_.get(); }

  /// `events` has the meaning that it has for epoll, level-triggered. Each of these functions returns false
  /// when the system refuses the operation.
  bool add(EventHandler& handler, int fd, std::uint32_t events);
  bool change(EventHandler& handler, int fd, std::uint32_t events);
  /// Must be called before the descriptor is closed or given away. Cancels the handler's time limit, too.
  void remove(EventHandler& handler, int fd);
  /// Makes the reactor call expired() once, after `ms` milliseconds.
  void set_timeout(EventHandler& handler, std::uint32_t ms);
  void cancel_timeout(const EventHandler& handler);
  /// Returns the number of milliseconds until the handler's time limit, at least 1.
  std::uint32_t time_left_ms(const EventHandler& handler) const;

  /// Calls the handlers of all events that have happened. Returns whether there was an event.
  bool progress();

 private:
  struct Timeout {
    EventHandler* handler;
    Clock::time_point at;
  };
  bool tell_expired();
  void set_timer();

  UniqueFd epoll_, timer_;
  std::vector<Timeout> timeouts_;
  std::vector<EventHandler*>
      notified_;  ///< handlers of the current progress(); null for a handler that was removed during it
};

}  // namespace rdma_rpc::fabric

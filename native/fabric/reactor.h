// What a device waits for beside its connected queue pairs: sockets that are no queue pair's yet, or no
// longer, and their time limits. One epoll descriptor, which every completion queue of the device watches.
// Used by the fabrics that connect by sockets (tcp, shm by descriptors), on the device's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric {

/// One socket that is waited for. Told at most once of each thing that happens; it may leave, or be
/// destroyed, then.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void ready() = 0;
  virtual void expired() = 0;
};

class Reactor {
 public:
  using Clock = std::chrono::steady_clock;

  /// False: the system refuses.
  bool open();
  int fd() const { return epoll_.get(); }

  /// `events` as for epoll; level-triggered. False: the system refuses.
  bool add(EventHandler& handler, int fd, std::uint32_t events);
  bool change(EventHandler& handler, int fd, std::uint32_t events);
  /// Before its descriptor is closed or given away. Ends its time limit, too.
  void remove(EventHandler& handler, int fd);
  /// Calls expired(), once.
  void set_timeout(EventHandler& handler, std::uint32_t ms);
  void cancel_timeout(const EventHandler& handler);
  /// Milliseconds until its limit; at least 1.
  std::uint32_t time_left_ms(const EventHandler& handler) const;

  /// Tells the handlers what has happened. True: something has.
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
  std::vector<EventHandler*> told_;  ///< of this progress(); null when it has left meanwhile
};

}  // namespace rdma_rpc::fabric

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
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void ready() = 0;
  virtual void expired() = 0;
};

class Watch {
 public:
  using Clock = std::chrono::steady_clock;

  /// False: the system refuses.
  bool open();
  int fd() const { return epoll_.get(); }

  /// `events` as for epoll; level-triggered. False: the system refuses.
  bool add(Waiter& waiter, int fd, std::uint32_t events);
  bool change(Waiter& waiter, int fd, std::uint32_t events);
  /// Before its descriptor is closed or given away. Ends its time limit, too.
  void remove(Waiter& waiter, int fd);
  /// Calls expired(), once.
  void limit(Waiter& waiter, std::uint32_t ms);
  void forget_limit(const Waiter& waiter);
  /// Milliseconds until its limit; at least 1.
  std::uint32_t left(const Waiter& waiter) const;

  /// Tells the waiters what has happened. True: something has.
  bool progress();

 private:
  struct Limit {
    Waiter* waiter;
    Clock::time_point at;
  };
  bool tell_expired();
  void set_timer();

  UniqueFd epoll_, timer_;
  std::vector<Limit> limits_;
  std::vector<Waiter*> told_;  ///< of this progress(); null when it has left meanwhile
};

}  // namespace rdma_rpc::fabric

// The connections of a device that are being made: their time limits, and the calls that run on threads of
// their own. On the device's thread.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "fabric/verbs/connect/connect_thread.h"

namespace rdma_rpc::fabric::verbs {

class Connection;

class Attempts {
 public:
  using Clock = std::chrono::steady_clock;

  Attempts() = default;
  ~Attempts();
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;
  /// False, and errno: the system refuses.
  bool open();

  /// Readable while progress() has something to do. May be watched together with other descriptors.
  int fd() const { return epoll_; }
  void progress();
  /// True while an attempt is under way, so that polling has to make progress too.
  bool busy() const { return !limits_.empty(); }

  // For connections.
  void enter(Connection& connection) { connections_.push_back(&connection); }
  void leave(Connection& connection);
  /// progress() calls connection.expire() at that time, unless another time was set or forget_limit() called
  /// before.
  void limit(Connection& connection, Clock::time_point time);
  void forget_limit(Connection& connection);
  /// What a thread of a connection rings: progress() calls call_returned() of all.
  const std::shared_ptr<WakeUp>& wake_up() const { return wake_up_; }

 private:
  void take_expired();
  void set_timer() const;

  std::shared_ptr<WakeUp> wake_up_;
  int timer_ = -1, epoll_ = -1;
  std::vector<Connection*> connections_;
  struct Limit {
    Connection* connection;
    Clock::time_point time;
  };
  std::vector<Limit> limits_;
};

}  // namespace rdma_rpc::fabric::verbs

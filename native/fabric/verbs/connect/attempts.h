// Manages the connection attempts of a device: their time limits and their blocking calls. Each blocking call
// runs on its own thread; everything else runs on the device's thread.
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
  /// Returns false, with errno set, when the system refuses.
  bool open();

  /// Returns a descriptor that is readable while progress() has work to do. The descriptor may be watched
  /// together with others.
  int fd() const { return epoll_; }
  void progress();
  /// Returns whether an attempt is in progress; if so, each poll must also call progress().
  bool busy() const { return !limits_.empty(); }

  // The following members are for connections.
  void enter(Connection& connection) { connections_.push_back(&connection); }
  void leave(Connection& connection);
  /// Makes progress() call connection.expire() at that time, unless another time is set or forget_limit() is
  /// called first.
  void limit(Connection& connection, Clock::time_point time);
  void forget_limit(Connection& connection);
  /// Returns the wake-up that the thread of a connection rings. progress() then calls call_returned() on all
  /// connections.
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

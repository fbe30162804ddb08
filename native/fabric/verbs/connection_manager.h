// A device's part of rdma_cm: the event channel of all its connections, the listener for those that peers ask
// for, and the time limits of attempts. On the device's thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/cm_objects.h"
#include "fabric/verbs/connect_thread.h"
#include "fabric/verbs/ip_address.h"

namespace rdma_rpc::fabric::verbs {

class Connection;
class Device;

/// Why rdma_cm cannot be used on this machine; empty when it can.
std::string why_no_rdma_cm();

class ConnectionManager {
 public:
  using Clock = std::chrono::steady_clock;

  /// Null, and why, when this device cannot be reached by rdma_cm.
  static std::unique_ptr<ConnectionManager> open(const Device& device, std::string* why);
  ~ConnectionManager();

  /// Readable while progress() has something to do. May be watched together with other descriptors.
  int fd() const { return epoll_; }
  /// Events and time limits.
  void progress();
  /// True while an attempt is under way, so that polling has to make progress too.
  bool busy() const { return !limits_.empty(); }

  /// Begins to take the peers' connections, once. Empty, or why it cannot.
  std::string listen();
  /// Of this device; with the listener's port while there is one.
  const IpAddress& address() const { return address_; }

  // For connections.
  const Device& device() const { return device_; }
  const std::shared_ptr<rdma_event_channel>& channel() const { return channel_; }
  const std::shared_ptr<WakeUp>& wake_up() const { return wake_up_; }
  IdPtr create_id(void* context) const;
  /// Whether rdma_cm has put this id on our device and port.
  bool is_mine(const rdma_cm_id& id) const;
  void enter(Connection& connection) { connections_.push_back(&connection); }
  void leave(Connection& connection);
  /// progress() calls connection.expire() at that time, unless another time was set or forget_limit() called
  /// before.
  void limit(Connection& connection, Clock::time_point time);
  void forget_limit(Connection& connection);

 private:
  explicit ConnectionManager(const Device& device) : device_(device) {}
  bool open_descriptors();
  bool find_address();
  bool leads_here(const IpAddress& address) const;
  void take_events();
  void take_request(rdma_cm_event& event);
  void take_expired();
  void set_timer() const;

  const Device& device_;
  std::shared_ptr<rdma_event_channel> channel_;
  std::shared_ptr<WakeUp> wake_up_;
  int timer_ = -1, epoll_ = -1;
  IpAddress address_;
  IdPtr listener_;
  bool removed_ = false;  ///< the device
  std::vector<Connection*> connections_;
  struct Limit {
    Connection* connection;
    Clock::time_point time;
  };
  std::vector<Limit> limits_;
};

}  // namespace rdma_rpc::fabric::verbs

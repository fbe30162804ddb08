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
  /// Whether a message of rdma_cm can leave this device now.
  bool can_speak() const;
  /// Destroys an id, now or when the port is up again. The kernel says good-bye to the peer then; soft-RoCE,
  /// which cannot send that through a port that is down, receives nothing of rdma_cm from then on, until the
  /// device is added anew.
  void put_away(IdPtr id);
  void port_came_up() { put_away_.clear(); }

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
  std::vector<IdPtr> put_away_;
  struct Limit {
    Connection* connection;
    Clock::time_point time;
  };
  std::vector<Limit> limits_;
};

}  // namespace rdma_rpc::fabric::verbs

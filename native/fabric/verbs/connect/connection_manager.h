// Owns the rdma_cm objects of a device: the event channel of all its connections, and the listener for
// incoming ones. This code runs on the device's thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/address/ip_address.h"
#include "fabric/verbs/connect/cm_objects.h"

namespace rdma_rpc::fabric::verbs {

class CmConnection;
class Device;

/// Returns why rdma_cm cannot be used on this machine, or "" when it can.
std::string why_no_rdma_cm();

class ConnectionManager {
 public:
  /// Returns null, with the reason in `why`, when rdma_cm cannot reach this device.
  static std::unique_ptr<ConnectionManager> open(const Device& device, std::string* why);
  ~ConnectionManager();

  /// Returns a descriptor that is readable while progress() has work to do. The descriptor may be watched
  /// together with others.
  int fd() const { return channel_->fd; }
  void progress();

  /// Starts to listen for the peers' connections. Must be called once. Returns "", or why that failed.
  std::string listen();
  /// Returns whether the device was removed from the machine. The kernel then waits until the device is
  /// closed.
  bool removed() const { return removed_; }
  /// Returns the address of this device, with the listener's port while the device listens.
  const IpAddress& address() const { return address_; }

  // The following members are for connections.
  const Device& device() const { return device_; }
  const std::shared_ptr<rdma_event_channel>& channel() const { return channel_; }
  IdPtr create_id(void* context) const;
  /// Returns whether rdma_cm has bound this id to our device and port.
  bool is_mine(const rdma_cm_id& id) const;
  void enter(CmConnection& connection) { connections_.push_back(&connection); }
  void leave(CmConnection& connection) { std::erase(connections_, &connection); }
  /// Returns whether rdma_cm can send a message from this device now.
  bool can_speak() const;
  /// Destroys an id now, or when the port is up again. On destruction the kernel sends a disconnect message
  /// to the peer. If soft-RoCE sends that message through a port that is down, soft-RoCE receives no further
  /// rdma_cm message until the device is removed and added again.
  void put_away(IdPtr id);
  void port_came_up() { put_away_.clear(); }

 private:
  explicit ConnectionManager(const Device& device) : device_(device) {}
  bool open_channel();
  bool find_address();
  bool leads_here(const IpAddress& address);
  void take_request(rdma_cm_event& event);

  const Device& device_;
  std::shared_ptr<rdma_event_channel> channel_;
  IpAddress address_;
  IdPtr anchor_;  ///< bound to the device, so that rdma_cm reports its removal even when no other id exists
  IdPtr listener_;
  bool removed_ = false;       ///< the device has been removed
  mutable bool spoke_ = true;  ///< the answer of can_speak() at that time
  mutable std::chrono::steady_clock::time_point asked_;
  std::vector<CmConnection*> connections_;
  std::vector<IdPtr> put_away_;
};

}  // namespace rdma_rpc::fabric::verbs

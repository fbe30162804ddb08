// A device's part of rdma_cm: the event channel of all its connections, and the listener for those that peers
// ask for. On the device's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/address/ip_address.h"
#include "fabric/verbs/connect/cm_objects.h"

namespace rdma_rpc::fabric::verbs {

class CmConnection;
class Device;

/// Why rdma_cm cannot be used on this machine; empty when it can.
std::string why_no_rdma_cm();

class ConnectionManager {
 public:
  /// Null, and why, when this device cannot be reached by rdma_cm.
  static std::unique_ptr<ConnectionManager> open(const Device& device, std::string* why);
  ~ConnectionManager();

  /// Readable while progress() has something to do. May be watched together with other descriptors.
  int fd() const { return channel_->fd; }
  void progress();

  /// Begins to take the peers' connections, once. Empty, or why it cannot.
  std::string listen();
  /// The device has been taken from the machine: the kernel waits until it is closed.
  bool removed() const { return removed_; }
  /// Of this device; with the listener's port while there is one.
  const IpAddress& address() const { return address_; }

  // For connections.
  const Device& device() const { return device_; }
  const std::shared_ptr<rdma_event_channel>& channel() const { return channel_; }
  IdPtr create_id(void* context) const;
  /// Whether rdma_cm has put this id on our device and port.
  bool is_mine(const rdma_cm_id& id) const;
  void enter(CmConnection& connection) { connections_.push_back(&connection); }
  void leave(CmConnection& connection) { std::erase(connections_, &connection); }
  /// Whether a message of rdma_cm can leave this device now.
  bool can_speak() const;
  /// Destroys an id, now or when the port is up again. The kernel says good-bye to the peer then; soft-RoCE,
  /// which cannot send that through a port that is down, receives nothing of rdma_cm from then on, until the
  /// device is added anew.
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
  IdPtr anchor_;  ///< bound to the device, so that rdma_cm tells us of its removal while nothing else is
  IdPtr listener_;
  bool removed_ = false;  ///< the device
  std::vector<CmConnection*> connections_;
  std::vector<IdPtr> put_away_;
};

}  // namespace rdma_rpc::fabric::verbs

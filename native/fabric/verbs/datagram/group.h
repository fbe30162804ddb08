// Manages a UD queue pair's membership of a multicast group, from attach_multicast() to detach_multicast() or
// the end of the queue pair. The membership has two parts. The device delivers the group's datagrams to the
// queue pair. On Ethernet, the host also joins the group by IGMP or MLD, because switches deliver the
// datagrams only to hosts that have joined, and the kernel's software devices get only packets that the
// host's IP layer accepts. This code runs on the device's thread.
#pragma once

#include <memory>
#include <string>

#include "fabric/address_handle.h"
#include "fabric/unique_fd.h"
#include "fabric/verbs/objects.h"
#include "fabric/verbs/port.h"

namespace rdma_rpc::fabric::verbs {

class Group {
 public:
  /// Returns null, with the reason in `why`, when the device or the host refuses. The group must be destroyed
  /// before the queue pair, because a device destroys no queue pair that belongs to a group.
  static std::unique_ptr<Group> join(ibv_qp* qp, const Port& port, const Gid& group, std::string* why);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const Gid& gid() const { return gid_; }

 private:
  explicit Group(const Gid& gid) : gid_(gid) {}

  const Gid gid_;  ///< as the user names the group
  ibv_gid on_wire_{};
  ibv_qp* qp_ = nullptr;
  UniqueFd membership_;  ///< a socket that has joined the group and receives nothing
};

}  // namespace rdma_rpc::fabric::verbs

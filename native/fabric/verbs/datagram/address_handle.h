// Implements the address handles of a device, and the resolution of a GID to the path of the datagrams for
// it. The device makes address handles for users, and each UD queue pair for itself. This code runs on the
// device's thread.
#pragma once

#include <memory>
#include <string>

#include "fabric/address_handle.h"
#include "fabric/verbs/objects.h"
#include "fabric/verbs/port.h"

namespace rdma_rpc::fabric::verbs {

class AddressHandle final : public fabric::AddressHandle {
 public:
  AddressHandle(const AhAttr& attr, AhPtr ah) : fabric::AddressHandle(attr), ah_(std::move(ah)) {}
  ibv_ah* get() const { return ah_.get(); }

 private:
  const AhPtr ah_;
};

/// Translates the GID of a group to the form that the port's network uses, in place. A port with an IPv4
/// address (RoCE v2) reaches the groups ff0e::ffff:A.B.C.D. On such a port a group ff0e::ffff:A.B.C.D becomes
/// ::ffff:A.B.C.D, as in rdma_cm. Returns "", or why the port cannot reach the group.
std::string to_group_of(const Port& port, Gid* group);

/// Returns a handle for datagrams that this port sends, or null with the reason in `error`. On Ethernet, the
/// kernel may first look for the neighbour, which takes up to three seconds when the neighbour does not
/// answer.
std::unique_ptr<AddressHandle> make_handle(ibv_pd* pd, const Port& port, const AhAttr& attr,
                                           std::string* error);

}  // namespace rdma_rpc::fabric::verbs

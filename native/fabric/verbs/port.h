// Chooses the port of a device and the GID that its queue pairs use. The options choose the port and the GID.
// Without such options they are chosen by the address that is served, or else by their rank. This code is
// called when a device is opened or listed.
#pragma once

#include <optional>
#include <string>

#include "fabric/verbs/address/address.h"
#include "fabric/verbs/address/interface.h"
#include "fabric/verbs/objects.h"
#include "fabric/verbs_loader.h"

namespace rdma_rpc::fabric::verbs {

struct Port {
  std::uint8_t number = 0;
  std::uint8_t gid_index = 0;
  std::uint16_t pkey_index = 0;
  bool has_address = false;  ///< it has the address named in the options
  bool needs_grh = false;    ///< every packet needs a global route header (IBV_QPF_GRH_REQUIRED)
  unsigned interface = 0;    ///< the network interface of its GID, 0 when the device does not report it
  std::uint64_t max_msg_bytes = 0;
  Address address;  ///< without the fields of a single queue pair
};

/// Sets `port` and returns "". Otherwise returns why `device` has no usable port; the text begins with the
/// device's name.
std::string choose_port(ibv_context* device, const VerbsOptions& options,
                        const std::optional<Interface>& interface, Port* port);

/// Queries a chosen port again, because addresses, LIDs and MTUs change while a server runs. Finds the GID at
/// its new index. When its address is gone, chooses the best remaining GID on the same network interface.
/// Changes nothing when the port has no GID now.
void refresh_port(ibv_context* device, const VerbsOptions& options, Port* port);

/// Returns why the port can neither send nor receive now, or "" when it can or the device does not say.
std::string why_down(ibv_context* device, std::uint8_t port);

/// Returns the ports with their GIDs, for display.
std::vector<VerbsPort> list_ports(ibv_context* device);

}  // namespace rdma_rpc::fabric::verbs

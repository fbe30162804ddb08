// The port of a device and the GID that its queue pairs use: as the user says, else by the address that is
// served, else the best. Called when a device is opened or listed.
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
  bool has_address = false;  ///< that of the options
  std::uint64_t max_msg_bytes = 0;
  Address address;  ///< without what is a queue pair's own
};

/// Empty, and the port in `port`; else why `device` has none, beginning with its name.
std::string choose_port(ibv_context* device, const VerbsOptions& options,
                        const std::optional<Interface>& interface, Port* port);

/// Why nothing leaves or reaches this port now. Empty: it does, or the device does not say.
std::string why_down(ibv_context* device, std::uint8_t port);

/// The ports with their GIDs, for people.
std::vector<VerbsPort> list_ports(ibv_context* device);

}  // namespace rdma_rpc::fabric::verbs

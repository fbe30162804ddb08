// Profiles of real NICs, derived from drivers, man pages and public issues. No test of this project ran on
// most of these NICs, so profiles.cc names the source of each trait.
#pragma once

#include <vector>

#include "nic/device/profile.h"

namespace rdma_rpc::nic {

/// Returns the NICs with reliable connections that can connect over the sideband.
std::vector<Profile> connectable();
/// Returns the NICs on which whole suites run. With sanitizers, which take several times as long, these are
/// only the three that differ most: with windows and late completions, without shared receives and with sends
/// flushed first, and with doubled events.
std::vector<Profile> for_suites();

/// Returns the Elastic Fabric Adapter, which has only datagrams.
Profile efa();
/// Returns Apple's Thunderbolt device, which has only unreliable connections.
Profile apple();
/// The next two return iWARP devices, which need rdma_cm: soft-iWARP, and eRDMA with its first drivers.
Profile siw();
Profile erdma_iwarp();

/// Returns the profile of connectable() with this name.
Profile profile_named(const std::string& name);

}  // namespace rdma_rpc::nic

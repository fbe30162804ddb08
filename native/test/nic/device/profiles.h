// The NICs that exist, as far as drivers, man pages and public issues tell how they behave. No test of this
// project ran on most of them, so each trait names its source in profiles.cc.
#pragma once

#include <vector>

#include "nic/device/profile.h"

namespace rdma_rpc::nic {

/// NICs with reliable connections that the sideband can connect.
std::vector<Profile> connectable();
/// Those on which whole suites run. With sanitizers, which take several times as long, these are only three
/// that differ most: with windows and late completions, without shared receives and with sends flushed first,
/// and with doubled events.
std::vector<Profile> for_suites();

/// Elastic Fabric Adapter: datagrams only.
Profile efa();
/// Apple's Thunderbolt devices: unreliable connections only.
Profile apple();
/// iWARP devices, which need rdma_cm: soft-iWARP, and eRDMA as its first drivers have it.
Profile siw();
Profile erdma_iwarp();

/// The profile with this name, which is one of connectable().
Profile profile_named(const std::string& name);

}  // namespace rdma_rpc::nic

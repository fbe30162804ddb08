// Defines the version of each fabric, for the data that two queue pairs exchange below the frames of their
// sessions. Both sides compare these numbers before they connect (FabricOffer in runtime/control/frames.ts),
// and each address blob and connect message carries its own. A version is increased when an older peer would
// misread data of a newer peer. docs/deploy/upgrading.md describes the consequences for users.
// runtime/fabrics.ts has the same numbers, and a test compares them. This file contains only constants, which
// any thread may read.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric {

/// Version of shm and shm-fd: the address blob, the segments (shm/layout.h), and the order of accesses to
/// them.
inline constexpr std::uint32_t kShmVersion = 3;
/// Version of tcp: the address blob and the frames.
inline constexpr std::uint8_t kTcpVersion = 1;
/// Version of verbs: the address blob and the private data of rdma_cm.
inline constexpr std::uint8_t kVerbsVersion = 1;
/// Version of the connect message, which tcp and shm-fd exchange first.
inline constexpr std::uint8_t kConnectVersion = 1;

}  // namespace rdma_rpc::fabric

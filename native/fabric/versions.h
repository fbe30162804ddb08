// The version of each fabric: what two queue pairs exchange below the frames of their sessions. Both sides
// compare these numbers before they connect (FabricOffer in runtime/control/frames.ts), and each address blob
// and connect message carries its own. Give a number its next value when an older peer would misread what a
// newer one writes; docs/deploy/upgrading.md says what that means for users. runtime/fabrics.ts has the same
// numbers, and a test compares them. Constants, for any thread.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric {

/// shm and shm-fd: address blob, segments (shm/layout.h), and what each side may do with them when.
inline constexpr std::uint32_t kShmVersion = 3;
/// tcp: address blob and frames.
inline constexpr std::uint8_t kTcpVersion = 1;
/// verbs: address blob and private data of rdma_cm.
inline constexpr std::uint8_t kVerbsVersion = 1;
/// The connect message of tcp and shm-fd, which comes before both.
inline constexpr std::uint8_t kConnectVersion = 1;

}  // namespace rdma_rpc::fabric

// Checks whether this side knows the layout of the data that a peer has sent or shown. The check comes before
// everything else is read, because a peer may have another version of this package. This file is used when
// queue pairs connect, on the device's thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fabric/shm/layout.h"

namespace rdma_rpc::fabric::shm {

/// Returns "", or the reason why the rest of an address must not be read. An address of another version may
/// have another size.
std::string why_not_read(std::span<const std::byte> address);

/// Returns "" for the header of a segment of the device in `address`, and `foreign` for the header of another
/// device's segment. Otherwise returns the reason why the rest of the segment must not be read.
std::string why_not_read(const Header& header, const AddressBlob& address, const char* foreign);

}  // namespace rdma_rpc::fabric::shm

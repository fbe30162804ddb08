// Whether this side knows the layout of what a peer has sent or shown. Comes before all else is read, since a
// peer may have another version of this package. Used when queue pairs connect, on the device's thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fabric/shm/layout.h"

namespace rdma_rpc::fabric::shm {

/// Returns "", or why the rest of an address must not be read. One of another version may have another size.
std::string why_not_read(std::span<const std::byte> address);

/// Returns "" for the header of a segment of the device in `address`, `foreign` for that of another device, and
/// otherwise why the rest of the segment must not be read.
std::string why_not_read(const Header& header, const AddressBlob& address, const char* foreign);

}  // namespace rdma_rpc::fabric::shm

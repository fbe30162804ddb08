// Relays the bytes of unix connections from unauthenticated peers on kernels that cannot refuse descriptors
// (before Linux 6.16, see rights.h). One thread of the process reads from those connections and passes only
// the bytes on, through socket pairs. A connection that sends a descriptor is closed. This file is used by
// the binding for the sideband connections of unix addresses, and by the acceptor, which needs the connection
// itself. Any thread may call these functions.
#pragma once

#include <string>

#include "fabric/rights.h"

namespace rdma_rpc::fabric {

/// Returns one end of a socket pair that carries the bytes of `connection` and is closed with it. Returns an
/// empty descriptor, with errno set, when the system refuses.
UniqueFd relay_bytes(ForeignFd connection);

/// Returns a new descriptor for the connection behind `relayed`, which is an end that relay_bytes() returned.
/// The relay no longer reads from the connection. Returns an empty descriptor when `relayed` is no such end.
UniqueFd relayed_connection(int relayed);

}  // namespace rdma_rpc::fabric

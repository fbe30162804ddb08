// Stands between this process and unix connections of strangers where the kernel cannot refuse descriptors
// (before Linux 6.16, rights.h): one thread of the process reads from them, and passes the bytes on through
// socket pairs. Whoever reads those gets bytes only. A connection that brings a descriptor ends. Used by the
// binding, for the sidebands of unix addresses, and by the acceptor, which wants the connection itself. Any
// thread.
#pragma once

#include <string>

#include "fabric/rights.h"

namespace rdma_rpc::fabric {

/// The end of a pair that leads to `connection`, which has the same life from now on. Nothing, and errno,
/// when the system refuses.
UniqueFd relay_bytes(ForeignFd connection);

/// The connection that the end `relayed` of a pair leads to, as a descriptor of its own; nobody else reads
/// from it any more. Nothing when `relayed` is no such end.
UniqueFd relayed_connection(int relayed);

}  // namespace rdma_rpc::fabric

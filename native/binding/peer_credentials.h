// Returns the process and user at the other end of a unix socket, as the kernel knows them. This code is
// called by a server for each connection that it accepts, and by a client for each connection that it makes
// (runtime/control/peer-identity.ts), on the JS thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// peerCredentials(fd) returns { pid, uid, gid } of the process that connected or listened, as they were at
/// that time. Returns undefined when fd is not a connected unix socket.
Napi::Value peer_credentials(const Napi::CallbackInfo& info);

}  // namespace rdma_rpc::binding

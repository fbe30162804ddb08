// Who is at the other end of a unix socket, as the kernel knows it. Asked by a server for each connection
// that it accepts, and by a client for each that it makes (runtime/control/peer-identity.ts), on the JS
// thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// peerCredentials(fd): { pid, uid, gid } of the process that connected, or listened, when it did so;
/// undefined for what is no connected unix socket.
Napi::Value peer_credentials(const Napi::CallbackInfo& info);

}  // namespace rdma_rpc::binding

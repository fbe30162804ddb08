// Returns the error that the kernel has recorded for a socket of JS. libuv of Node 20 and 22 reports an
// orderly end when a connection was reset behind data that had not been read yet, so the tunnel asks the
// kernel (cli/tunnel/program-side.ts). This code is called on the JS thread, once at the end of a connection.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// takeSocketError(fd) returns the errno, or 0 when the kernel has recorded no error. The kernel forgets the
/// error when it is read.
Napi::Value take_socket_error(const Napi::CallbackInfo& info);

}  // namespace rdma_rpc::binding

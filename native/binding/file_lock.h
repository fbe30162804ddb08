// A lock on a file, held until it is let go or the process ends, whichever way it ends. Made by a listener
// (runtime/control/socket/unix-path.ts), on the JS thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// lockFile(path, text): creates the file, or takes over one that a dead process left, locks it and writes
/// `text`. Throws an Error whose `code` is EWOULDBLOCK when another holds it, EEXIST when the file is not one
/// of ours.
Napi::Value lock_file(const Napi::CallbackInfo& info);

/// unlockFile(lock): removes the file, if it is still the one that was locked and ours, and lets it go.
/// Nothing the second time.
Napi::Value unlock_file(const Napi::CallbackInfo& info);

}  // namespace rdma_rpc::binding

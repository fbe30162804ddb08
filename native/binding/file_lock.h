// Locks a file until the lock is released or the process ends in any way. This file is used by listeners
// (runtime/control/socket/unix-path.ts), on the JS thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// lockFile(path, text) creates the file, or takes over a file that a dead process left, locks it and writes
/// `text`. Throws an Error whose `code` is EWOULDBLOCK when another process holds the lock, or EEXIST when
/// another program has created the file.
Napi::Value lock_file(const Napi::CallbackInfo& info);

/// unlockFile(lock) releases the lock. It also removes the file, if this process has created the file and the
/// path still names that file. The second call has no effect.
Napi::Value unlock_file(const Napi::CallbackInfo& info);

}  // namespace rdma_rpc::binding

// The options of a session as JS gives them, and what sessions can be sealed with here. On the JS thread.
#pragma once

#include <napi.h>

#include "session/shared.h"

namespace rdma_rpc::binding {

session::SessionOptions read_session_options(const Napi::Object& given);

/// Names of ciphers, the fastest for this processor first.
Napi::Array cipher_names(Napi::Env env);

}  // namespace rdma_rpc::binding

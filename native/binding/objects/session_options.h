// The options of a session as JS gives them, and what sessions can be sealed with here. On the JS thread.
#pragma once

#include <napi.h>

#include "session/session_options.h"

namespace rdma_rpc::binding {

/// `error`: why they are none, such as keys of another length.
session::SessionOptions read_session_options(const Napi::Object& given, std::string* error);

/// Names of ciphers, the fastest for this processor first.
Napi::Array cipher_names(Napi::Env env);

}  // namespace rdma_rpc::binding

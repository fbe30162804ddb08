// Reads the options of a session from JS, and lists the ciphers that can seal sessions. This code runs on the
// JS thread.
#pragma once

#include <napi.h>

#include "session/session_options.h"

namespace rdma_rpc::binding {

/// Sets `error` when the options are invalid, for example because of keys of a wrong length.
session::SessionOptions read_session_options(const Napi::Object& given, std::string* error);

/// Returns the names of the available ciphers, the fastest on this processor first.
Napi::Array cipher_names(Napi::Env env);

}  // namespace rdma_rpc::binding

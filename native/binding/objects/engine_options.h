// Reads the options of a context as JS gives them (NativeOptions in runtime/native/native.ts). The options
// are read on the JS thread when a context is created.
#pragma once

#include <napi.h>

#include "binding/engine.h"

namespace rdma_rpc::binding {

EngineOptions read_options(const Napi::Object& given);
/// Reads the options of the fabric verbs; missing fields keep their defaults.
fabric::VerbsOptions read_verbs(const Napi::Value& value);

}  // namespace rdma_rpc::binding

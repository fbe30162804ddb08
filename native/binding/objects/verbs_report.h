// What the machine's RDMA devices are, as the object that runtime/native/native.ts calls VerbsReport. Called by
// NativeModule.verbsDevices() and NativeContext, on the JS thread.
#pragma once

#include <napi.h>

#include "fabric/fabric.h"

namespace rdma_rpc::binding {

/// What runtime/native/native.ts calls VerbsCapabilities, of any fabric's device.
Napi::Object capabilities_object(Napi::Env env, const fabric::Capabilities& given);

Napi::Object verbs_report(Napi::Env env, std::size_t needed_bytes);

}  // namespace rdma_rpc::binding

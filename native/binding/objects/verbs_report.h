// Describes the RDMA devices of the machine to JS: VerbsReport of runtime/native/native.ts. This code is
// called by NativeModule.verbsDevices() and NativeContext, on the JS thread.
#pragma once

#include <napi.h>

#include "fabric/fabric.h"

namespace rdma_rpc::binding {

/// Returns the capabilities of a device of any fabric: VerbsCapabilities of runtime/native/native.ts.
Napi::Object capabilities_object(Napi::Env env, const fabric::Capabilities& given);

/// Takes the arguments of NativeModule.verbsDevices().
Napi::Object verbs_report(const Napi::CallbackInfo& info);

}  // namespace rdma_rpc::binding

// What the machine's RDMA devices are, as the object that runtime/native.ts calls VerbsReport. Called by
// NativeModule.verbsDevices(), on the JS thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

Napi::Object verbs_report(Napi::Env env, std::size_t needed_bytes);

}  // namespace rdma_rpc::binding

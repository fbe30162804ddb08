// The object that runtime/native-perf.ts declares as NativePerf: one side of a test of `rdma-rpc perf`. On
// the JS thread; connecting and each step run on a thread of their own, which tells by a thread-safe
// function.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// Defines openPerf() on the module's exports.
void define_perf(Napi::Env env, Napi::Object exports);

}  // namespace rdma_rpc::binding

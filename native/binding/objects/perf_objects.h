// What `rdma-rpc perf` says to native code and hears from it, as objects of JS (runtime/native-perf.ts). On
// the JS thread.
#pragma once

#include <napi.h>

#include <string>

#include "perf/pair.h"

namespace rdma_rpc::binding {

perf::PairOptions read_pair_options(const Napi::Object& given);
perf::Step read_step(const Napi::Object& given);
/// What a peer has sent: checked here for its kinds, and by the device for what it says.
perf::PeerAddress read_perf_address(const Napi::Object& given);

Napi::Object perf_address(Napi::Env env, const perf::Endpoint& endpoint, std::uint32_t queue_pairs);
Napi::Object perf_limits(Napi::Env env, const perf::Limits& limits);
Napi::Object perf_outcome(Napi::Env env, const perf::Outcome& outcome);

}  // namespace rdma_rpc::binding

// Returns the counters of a context to JS as an object: Stats of runtime/native/stats.ts. The object is
// created on the JS thread when JS asks for it.
#pragma once

#include <napi.h>

#include "binding/objects/counters.h"

namespace rdma_rpc::binding {

inline Napi::Object stats_object(Napi::Env env, session::Context& context, const PumpCounters& pump) {
  auto result = Napi::Object::New(env);
  for (const Counter& each : counters_of(context, pump)) {
    result.Set(each.name, static_cast<double>(each.value));
  }
  return result;
}

}  // namespace rdma_rpc::binding

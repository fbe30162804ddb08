// Returns the flight recorder's data of a session, to be written to a file: sessionTrace() of
// runtime/native/native.ts. The object is created on the JS thread when a session has failed.
#pragma once

#include <napi.h>

#include <cstring>
#include <string>
#include <vector>

#include "session/context.h"

namespace rdma_rpc::binding {

/// Returns undefined for a session that has not failed.
inline Napi::Value trace_object(Napi::Env env, session::Context& context, const session::Session& session) {
  if (!session.failed()) return env.Undefined();
  const std::vector<telemetry::EventRow> rows = session.recorder().rows();
  const std::size_t bytes = rows.size() * sizeof(telemetry::EventRow);
  auto copy = Napi::Uint8Array::New(env, bytes);
  if (bytes != 0) std::memcpy(copy.Data(), rows.data(), bytes);
  auto result = Napi::Object::New(env);
  result.Set("rows", copy);
  result.Set("client", session.options().client);
  result.Set("peer", std::string(context.name_of_session(session.number())));
  return result;
}

}  // namespace rdma_rpc::binding

// Describes a session to JS: SessionInfo of runtime/native/native.ts. The object is created on the JS thread
// when JS asks for it.
#pragma once

#include <napi.h>

#include "session/context.h"

namespace rdma_rpc::binding {

inline Napi::Object session_object(Napi::Env env, session::Context& context,
                                   const session::Session& session) {
  auto result = Napi::Object::New(env);
  const fabric::Capabilities& can = context.device().capabilities();
  result.Set("device", can.name);
  result.Set("port", can.port);
  const session::SessionState state = session.state();
  result.Set("state", state <= session::SessionState::connecting ? "connecting"
                      : state == session::SessionState::ready    ? "ready"
                                                                 : "down");
  result.Set("endedThere", session.ended_there());
  result.Set("callsInFlight", session.calls_in_flight());
  result.Set("sendCredits", session.send_credits());
  result.Set("security", session::to_string(session.security()));
  return result;
}

}  // namespace rdma_rpc::binding

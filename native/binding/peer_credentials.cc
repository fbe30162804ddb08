// See peer_credentials.h.
#include "binding/peer_credentials.h"

#include <sys/socket.h>
#include <sys/types.h>

namespace rdma_rpc::binding {
namespace {

/// For other sockets the kernel returns process 0 and a user id that no user has.
bool is_unix(int fd) {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

}  // namespace

Napi::Value peer_credentials(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const int fd = info[0].As<Napi::Number>().Int32Value();
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (!is_unix(fd) || ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || bytes != sizeof peer)
    return env.Undefined();
  Napi::Object result = Napi::Object::New(env);
  result.Set("pid", Napi::Number::New(env, peer.pid));
  result.Set("uid", Napi::Number::New(env, peer.uid));
  result.Set("gid", Napi::Number::New(env, peer.gid));
  return result;
}

}  // namespace rdma_rpc::binding

// See socket_error.h.
#include "binding/socket_error.h"

#include <sys/socket.h>

namespace rdma_rpc::binding {

Napi::Value take_socket_error(const Napi::CallbackInfo& info) {
  int error = 0;
  socklen_t bytes = sizeof error;
  const int fd = info[0].As<Napi::Number>().Int32Value();
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = 0;
  return Napi::Number::New(info.Env(), error);
}

}  // namespace rdma_rpc::binding

// See unix_socket.h.
#include "binding/unix_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/rights.h"
#include "fabric/socket_relay.h"

namespace rdma_rpc::binding {
namespace {

using fabric::ForeignFd;
using fabric::UniqueFd;

/// Returns the open descriptors of this process.
std::vector<int> descriptors() {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (folder == nullptr) return found;
  while (const dirent* each = ::readdir(folder.get()))
    if (each->d_name[0] != '.') found.push_back(std::atoi(each->d_name));
  return found;
}

bool listens_at(int fd, std::string_view name) {
  sockaddr_un bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0 || bound.sun_family != AF_UNIX)
    return false;
  const std::string_view path(bound.sun_path, ::strnlen(bound.sun_path, sizeof bound.sun_path));
  int listens = 0;
  length = sizeof listens;
  return path.ends_with(name) && ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 &&
         listens != 0;
}

Napi::Value guard_listener(const Napi::CallbackInfo& info) {
  const std::string name = info[0].As<Napi::String>().Utf8Value();
  for (const int fd : descriptors()) {
    if (!listens_at(fd, name)) continue;
    if (!fabric::refuse_rights(fd)) return Napi::Boolean::New(info.Env(), false);
    // A client that has connected before this call may already have sent descriptors, so it is closed. Such a
    // client is not a client of the service, because the path has not been published yet.
    pollfd wait{fd, POLLIN, 0};
    while (::poll(&wait, 1, 0) == 1) {
      UniqueFd early(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
      if (!early) break;
      fabric::close_elsewhere(std::move(early));
    }
    return Napi::Boolean::New(info.Env(), true);
  }
  return Napi::Boolean::New(info.Env(), false);
}

Napi::Value relay_bytes(const Napi::CallbackInfo& info) {
  UniqueFd own(::fcntl(info[0].As<Napi::Number>().Int32Value(), F_DUPFD_CLOEXEC, 0));
  UniqueFd end = own ? fabric::relay_bytes(ForeignFd(std::move(own))) : UniqueFd();
  return Napi::Number::New(info.Env(), end ? end.release() : -errno);
}

Napi::Value dial_unix(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>().Utf8Value();
  const bool relayed = info[1].As<Napi::Boolean>().Value();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() > sizeof name.sun_path) return Napi::Number::New(info.Env(), -EINVAL);
  std::memcpy(name.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Napi::Number::New(info.Env(), -errno);
  // Descriptors are refused before connect(), so that the server cannot send any first.
  if (!relayed) fabric::refuse_rights(fd.get());
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0)
    return Napi::Number::New(info.Env(), -errno);
  if (relayed) fd = fabric::relay_bytes(ForeignFd(std::move(fd)));
  return Napi::Number::New(info.Env(), fd ? fd.release() : -errno);
}

}  // namespace

void define_unix_sockets(Napi::Env env, Napi::Object exports) {
  exports.Set("refusesRights", Napi::Boolean::New(env, fabric::kernel_refuses_rights()));
  exports.Set("guardListener", Napi::Function::New(env, guard_listener));
  exports.Set("relayBytes", Napi::Function::New(env, relay_bytes));
  exports.Set("dialUnix", Napi::Function::New(env, dial_unix));
}

}  // namespace rdma_rpc::binding

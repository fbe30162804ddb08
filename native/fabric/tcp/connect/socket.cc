// See socket.h.
#include "fabric/tcp/connect/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rdma_rpc::fabric::tcp {
namespace {

/// Number of keepalive probes within the peer timeout. The first probe is sent after a quarter of it.
constexpr std::uint32_t kProbesOfTimeout = 4;

}  // namespace

std::string prepare(int fd, const TcpOptions& options) {
  const auto probe_s = static_cast<int>(std::max(options.peer_timeout_ms / 1000 / kProbesOfTimeout, 1u));
  const struct {
    const char* name;
    int level, option, value;
  } wanted[] = {
      {"TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1},
      {"TCP_NOTSENT_LOWAT", IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(options.unsent_max)},
      {"TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(options.peer_timeout_ms)},
      {"SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1},
      {"TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, probe_s},
      {"TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, probe_s},
      {"TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, static_cast<int>(kProbesOfTimeout) - 1},
  };
  for (const auto& option : wanted) {
    if (::setsockopt(fd, option.level, option.option, &option.value, sizeof option.value) != 0) {
      return std::string("cannot set the socket option ") + option.name + ": " + std::strerror(errno);
    }
  }
  return {};
}

void reset_on_close(int fd) {
  const linger now{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void reset_connection(UniqueFd& fd) {
  reset_on_close(fd.get());
  fd.reset();
}

std::string why_lost(int error) {
  std::string text = std::strerror(error);
  if (error == ETIMEDOUT) text += " (the peer has acknowledged nothing for peer_timeout_ms)";
  if (error == ECONNRESET)
    text += " (the peer's process has ended, or a device on the path has cut the connection)";
  return text;
}

}  // namespace rdma_rpc::fabric::tcp

// See path_progress.h.
#include "fabric/tcp/queue/path_progress.h"

#include <linux/sockios.h>
// The tcp_info of <netinet/tcp.h>, which cannot be included beside this header, has no counters of bytes.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace rdma_rpc::fabric::tcp {

std::optional<PathProgress> kernel_path_progress(int fd) {
  int pending = 0;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::ioctl(fd, SIOCOUTQ, &pending) != 0) return std::nullopt;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  return PathProgress{info.tcpi_bytes_acked, static_cast<std::uint64_t>(std::max(pending, 0)),
                      info.tcpi_bytes_received};
}

}  // namespace rdma_rpc::fabric::tcp

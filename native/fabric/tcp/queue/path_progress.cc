// See path_progress.h.
#include "fabric/tcp/queue/path_progress.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace rdma_rpc::fabric::tcp {

std::optional<PathProgress> path_progress(int fd, const StreamBytes& own) {
  int pending = 0;
  int unread = 0;
  if (::ioctl(fd, SIOCOUTQ, &pending) != 0 || ::ioctl(fd, SIOCINQ, &unread) != 0) return std::nullopt;
  PathProgress progress;
  progress.pending = static_cast<std::uint64_t>(std::max(pending, 0));
  // The message that connects two queue pairs may also be pending. `own.sent` does not include it.
  progress.acknowledged = own.sent - std::min(own.sent, progress.pending);
  progress.received = own.received + static_cast<std::uint64_t>(std::max(unread, 0));
  return progress;
}

}  // namespace rdma_rpc::fabric::tcp

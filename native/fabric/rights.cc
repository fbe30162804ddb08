// See rights.h.
#include "fabric/rights.h"

#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>

#include "fabric/detached_thread.h"

namespace rdma_rpc::fabric {
namespace {

/// Number of the socket option SO_PASSRIGHTS, which the headers of older systems lack.
constexpr int kPassRights = 83;
/// Limit of descriptors that the kernel passes with one message (SCM_MAX_FD).
constexpr std::size_t kFilesMax = 253;
/// Limit of threads that close descriptors. One thread is enough unless the owner of a file delays its close.
constexpr int kThreadsMax = 8;
constexpr std::size_t kStackBytes = 64 * 1024;

bool pass_rights(int fd, int on) { return ::setsockopt(fd, SOL_SOCKET, kPassRights, &on, sizeof on) == 0; }

/// This object lives as long as the process, like threads whose close() is delayed.
struct Closing {
  std::mutex mutex;
  std::deque<UniqueFd> waiting;
  std::atomic<std::size_t> count{0};  ///< includes descriptors that are being closed
  int threads = 0;
};
Closing& closing() {
  static Closing& only = *new Closing;
  return only;
}

void close_all() {
  Closing& all = closing();
  for (;;) {
    UniqueFd fd;
    {
      const std::lock_guard lock(all.mutex);
      if (all.waiting.empty()) {
        --all.threads;
        return;
      }
      fd = std::move(all.waiting.front());
      all.waiting.pop_front();
    }
    const linger none{0, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    fd.reset();
    --all.count;
  }
}

}  // namespace

bool refuse_rights(int fd) { return pass_rights(fd, 0); }
void allow_rights(int fd) { pass_rights(fd, 1); }

bool kernel_refuses_rights() {
  static const bool known = [] {
    const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return probe && refuse_rights(probe.get());
  }();
  return known;
}

void close_elsewhere(UniqueFd fd) {
  if (!fd) return;
  Closing& all = closing();
  const std::lock_guard lock(all.mutex);
  all.waiting.push_back(std::move(fd));
  ++all.count;
  // A closing thread ends when it has no work. A thread that still exists may therefore be blocked in a
  // close(), so another thread is started.
  if (all.threads == kThreadsMax) return;
  ++all.threads;
  // If no thread can be started now, the thread that is started for a later descriptor also closes this one.
  if (start_detached(kStackBytes, close_all) != 0) --all.threads;
}

std::size_t being_closed() { return closing().count; }

ssize_t receive_with_rights(int fd, void* bytes, std::size_t room, std::vector<ForeignFd>* files, bool* cut) {
  union {
    cmsghdr align;
    char bytes[CMSG_SPACE(kFilesMax * sizeof(int))];
  } control;
  iovec part{bytes, room};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(each) + i * sizeof file, sizeof file);
      files->emplace_back(UniqueFd(file));
    }
  }
  *cut = (message.msg_flags & MSG_CTRUNC) != 0;
  return got;
}

}  // namespace rdma_rpc::fabric

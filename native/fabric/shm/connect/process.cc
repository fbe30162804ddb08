// Reads /proc/<pid>/task/<pid>/stat; see process.h.
#include "fabric/shm/connect/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>

namespace rdma_rpc::fabric::shm {
namespace {

struct Stat {
  char state = 0;
  std::uint64_t start_ticks = 0;
};

/// Returns std::nullopt, with errno set, when the file cannot be read.
std::optional<Stat> read_stat(std::uint32_t pid) {
  // Reads the entry of the first thread, which has the start time of the process. An emulator (qemu-user)
  // answers /proc/<own pid>/stat itself, with a start time that differs from the one that other processes
  // see.
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%" PRIu32 "/task/%" PRIu32 "/stat", pid, pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char text[1024];
  const ssize_t length = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  errno = ESRCH;
  if (length <= 0) return std::nullopt;
  text[length] = '\0';
  // The second field is the program's name in parentheses; the name may contain blanks and parentheses.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr) return std::nullopt;
  Stat stat;
  // Field 3 is the state, field 22 the start time.
  if (std::sscanf(at + 1,
                  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
                  &stat.state, &stat.start_ticks) != 2) {
    return std::nullopt;
  }
  return stat;
}

}  // namespace

ProcessIdentity this_process() {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const auto stat = read_stat(pid);
  return {pid, stat ? stat->start_ticks : 0};
}

bool is_running(const ProcessIdentity& process, int* unknown) {
  const auto stat = read_stat(process.pid);
  if (unknown != nullptr) *unknown = 0;
  if (stat) return stat->start_ticks == process.start_ticks && stat->state != 'Z' && stat->state != 'X';
  if (errno == ENOENT || errno == ESRCH) return false;
  if (unknown != nullptr) *unknown = errno;
  return true;
}

}  // namespace rdma_rpc::fabric::shm

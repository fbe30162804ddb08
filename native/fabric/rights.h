// File descriptors passed over a unix connection (SCM_RIGHTS). Any peer that can connect can send them,
// wanted or not. The kernel closes those that the receiver does not take, in the thread that reads or that
// closes the connection, and the last close of a file can take as long as its sender likes: a TCP socket with
// SO_LINGER and unsent bytes, or a file of a file system in user space. A connection therefore either refuses
// descriptors (SO_PASSRIGHTS, Linux 6.16), or takes all that come and has another thread close them. Used by
// the control connection of shm with passed descriptors, the acceptor, the relay and the binding, on any
// thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric {

/// Makes the kernel reject descriptors at their sender, on this socket or on all connections that a listener
/// accepts. Returns false when this kernel cannot.
bool refuse_rights(int fd);
/// Allows descriptors again.
void allow_rights(int fd);
/// Returns whether this kernel can reject descriptors.
bool kernel_refuses_rights();

/// Closes the descriptor on another thread, since that can take long. A socket is closed without lingering.
void close_elsewhere(UniqueFd fd);
/// Number of descriptors that wait to be closed or are being closed. Beyond kClosingMax no more should be
/// accepted.
std::size_t being_closed();
inline constexpr std::size_t kClosingMax = 1024;

/// A descriptor that another party opened, or a connection from another party; it is closed on another
/// thread.
class ForeignFd {
 public:
  ForeignFd() = default;
  explicit ForeignFd(UniqueFd fd) : fd_(std::move(fd)) {}
  ForeignFd(ForeignFd&&) noexcept = default;
  ForeignFd& operator=(ForeignFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~ForeignFd() { reset(); }
  const UniqueFd& fd() const { return fd_; }
  int get() const { return fd_.get(); }
  UniqueFd release() { return std::move(fd_); }
  void reset() {
    if (fd_) close_elsewhere(std::move(fd_));
  }
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  UniqueFd fd_;
};

/// As recv() without waiting; received descriptors are added to `files`. `cut` reports that some were lost
/// because this process had no free descriptor. (The kernel then closes them in this thread.)
ssize_t receive_with_rights(int fd, void* bytes, std::size_t room, std::vector<ForeignFd>* files, bool* cut);

}  // namespace rdma_rpc::fabric

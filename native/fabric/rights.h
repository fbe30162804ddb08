// Sends, receives and closes file descriptors that are passed over a unix connection (SCM_RIGHTS). Any peer
// that can connect can send them, wanted or unwanted. The kernel closes the descriptors that the receiver
// does not accept. The kernel closes them in the thread that reads from the connection or closes it. The
// sender can make the last close of a file take as long as it likes: the file may be a TCP socket with
// SO_LINGER and unsent bytes, or belong to a file system in user space. Therefore a connection either refuses
// descriptors (SO_PASSRIGHTS, Linux 6.16), or accepts all that arrive and has another thread close them. This
// file is used by the control connection of shm with passed descriptors, the acceptor, the relay and the
// binding, on any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric {

/// Makes the kernel reject descriptors at their sender, on this socket or on all connections that a listener
/// accepts. Returns false when this kernel cannot refuse descriptors.
bool refuse_rights(int fd);
/// Allows descriptors again after refuse_rights().
void allow_rights(int fd);
/// Returns whether this kernel can reject descriptors.
bool kernel_refuses_rights();

/// Closes the descriptor on another thread, because closing can take long. A socket is closed without
/// lingering.
void close_elsewhere(UniqueFd fd);
/// Returns the number of descriptors that wait to be closed or are being closed. Beyond kClosingMax no more
/// descriptors should be accepted.
std::size_t being_closed();
inline constexpr std::size_t kClosingMax = 1024;

/// A descriptor that another party has opened, or a connection from another party. This descriptor is closed
/// on another thread.
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

/// Works like recv() without waiting, and adds received descriptors to `files`. `cut` is set when some were
/// lost because this process had no free descriptor. (The kernel then closes them in this thread.)
ssize_t receive_with_rights(int fd, void* bytes, std::size_t room, std::vector<ForeignFd>* files, bool* cut);

}  // namespace rdma_rpc::fabric

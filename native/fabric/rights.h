// Descriptors that travel with the bytes of a unix connection (SCM_RIGHTS). Whoever may connect can send
// them, wanted or not, and the kernel closes those that nobody takes in the thread that reads, or that closes
// the connection. The last close of a file can take as long as its sender likes: a TCP socket with SO_LINGER
// and unsent bytes, a file of a file system in user space. So a connection either refuses them
// (SO_PASSRIGHTS, Linux 6.16), or takes all that come and has another thread close them. Used by the control
// connection of shm by descriptors, the acceptor, the relay and the binding, on any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric {

/// The kernel refuses them to whoever sends some, on this socket, or on all that a listener will accept.
/// False: this kernel cannot.
bool refuse_rights(int fd);
/// They come again.
void allow_rights(int fd);
/// Whether this kernel can refuse them.
bool kernel_refuses_rights();

/// Closes it on a thread of its own, however long that takes. What is a socket does not linger.
void close_elsewhere(UniqueFd fd);
/// So many wait to be closed, or are being closed. Beyond kClosingMax nobody should take any more.
std::size_t being_closed();
inline constexpr std::size_t kClosingMax = 1024;

/// A descriptor that somebody else has opened, or a connection from somebody else: its end happens elsewhere.
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

/// As recv(), without waiting; descriptors that come are added to `files`. `cut`: some were lost, since none
/// was free here. (They are closed in this thread then.)
ssize_t receive_with_rights(int fd, void* bytes, std::size_t room, std::vector<ForeignFd>* files, bool* cut);

}  // namespace rdma_rpc::fabric

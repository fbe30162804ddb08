// A TCP socket and its options. Used wherever a connection is made, taken or lost, on the device's thread.
#pragma once

#include <string>
#include <utility>

#include "fabric/tcp/tcp.h"

namespace rdma_rpc::fabric::tcp {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }
  int get() const { return fd_; }
  void reset();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// What every connection of a queue pair has: no delay, a short queue of unsent bytes, and a peer that
/// answers nothing is noticed. Empty, or why not.
std::string prepare(int fd, const TcpOptions& options);
/// The peer is to hear of it at once, and of nothing that is still on its way.
void reset_connection(UniqueFd& fd);
/// Of these few bytes, on a connection that is new. False: it does not take them, or is lost.
bool say(int fd, const void* bytes, std::size_t count);
/// strerror, with what it means where that is not plain.
std::string why_lost(int error);

}  // namespace rdma_rpc::fabric::tcp

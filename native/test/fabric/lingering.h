// Makes harmful descriptors that a hostile peer may send: TCP sockets whose last close takes as long as their
// sender chooses. Tests of unix connections use this file.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric::test {

/// kLinger is far longer than any action of these tests takes on a loaded machine.
inline constexpr std::chrono::seconds kLinger{60};
inline constexpr std::chrono::seconds kAtOnce{20};

/// A socket with unsent bytes. The peer of the socket reads nothing while this object exists.
class Lingering {
 public:
  Lingering() {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof name;
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&name), length), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &length), 0);
    socket_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&name), length), 0);
    peer_ = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger on{1, static_cast<int>(kLinger.count())};
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &on, sizeof on), 0);
    const std::vector<char> bytes(1 << 16);
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  /// Gives the socket away. The last close of the socket takes kLinger, on any thread.
  UniqueFd give() { return std::move(socket_); }

 private:
  UniqueFd socket_, peer_;
};

/// Sends `files` with one byte. Returns false, with errno set, when the kernel refuses them.
inline bool send_files(int to, const std::vector<int>& files, char byte = 'x') {
  iovec part{&byte, 1};
  std::vector<std::byte> buffer(CMSG_SPACE(files.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = buffer.data();
  message.msg_controllen = buffer.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(rights), files.data(), files.size() * sizeof(int));
  return ::sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/// Returns how long the action blocked this thread.
template <class Action>
std::chrono::steady_clock::duration time_of(Action action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::steady_clock::now() - begin;
}

}  // namespace rdma_rpc::fabric::test

// Implements a relay between two ends of the tcp fabric, like a proxy or a tunnel: it accepts connections,
// opens a connection to an endpoint of its choice for each of them, and forwards bytes until it is told to
// cut. This code runs on the test's thread.
#pragma once

#include <functional>
#include <list>

#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {

class Relay {
 public:
  /// `next` returns the endpoint of the next connection.
  explicit Relay(std::function<tcp::Endpoint()> next) : next_(std::move(next)) {
    EXPECT_TRUE(tcp::parse_host("127.0.0.1", &endpoint_));
    sockaddr_storage name{};
    const socklen_t length = tcp::to_sockaddr(endpoint_, &name);
    listener_ = UniqueFd(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), length), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_TRUE(tcp::local_endpoint(listener_.get(), &endpoint_));
  }
  const tcp::Endpoint& endpoint() const { return endpoint_; }
  int connections() const { return taken_; }

  /// Resets both directions after this number of bytes has arrived from one side (true: from the side that
  /// opened the connection).
  void cut_after(bool from_dialer, std::size_t bytes) {
    cut_from_dialer_ = from_dialer;
    cut_after_ = bytes;
  }

  /// Does a little of its work.
  void pump() {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      ++taken_;
      Line& line = lines_.emplace_back();
      line.ends[0] = std::move(fd);
      sockaddr_storage name{};
      const socklen_t length = tcp::to_sockaddr(next_(), &name);
      line.ends[1] = UniqueFd(::socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(::connect(line.ends[1].get(), reinterpret_cast<sockaddr*>(&name), length), 0);
    }
    std::erase_if(lines_, [this](Line& line) { return !pass(line, 0) || !pass(line, 1); });
  }

 private:
  struct Line {
    UniqueFd ends[2];
    std::size_t passed[2] = {};
    bool over[2] = {};
  };

  /// Forwards bytes. Returns false when the line is cut, or has ended.
  bool pass(Line& line, int from) {
    const bool counts = (from == 0) == cut_from_dialer_;
    char bytes[4096];
    const std::size_t most = counts ? std::min(sizeof bytes, cut_after_ - line.passed[from]) : sizeof bytes;
    if (most == 0) {
      tcp::reset_connection(line.ends[0]);
      tcp::reset_connection(line.ends[1]);
      return false;
    }
    if (line.over[from]) return !line.over[1 - from];
    const ssize_t got = ::recv(line.ends[from].get(), bytes, most, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) {
      line.over[from] = true;
      ::shutdown(line.ends[1 - from].get(), SHUT_WR);
      return true;
    }
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t part = ::send(line.ends[1 - from].get(), bytes + sent,
                                  static_cast<std::size_t>(got - sent), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (part < 0) return false;  // the bytes that these tests send fit into a socket
      sent += part;
    }
    line.passed[from] += static_cast<std::size_t>(got);
    return true;
  }

  std::function<tcp::Endpoint()> next_;
  tcp::Endpoint endpoint_;
  UniqueFd listener_;
  std::list<Line> lines_;
  int taken_ = 0;
  bool cut_from_dialer_ = false;
  std::size_t cut_after_ = ~std::size_t{0};
};

}  // namespace rdma_rpc::fabric::test

// The tests of the tcp fabric's own rules share this code: one end with memory and a window, and a peer that
// is only a socket, which the test controls. This code runs on the test's thread, which serves both.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/suite/fabric_suite.h"
#include "fabric/tcp/connect/address.h"
#include "fabric/tcp/connect/socket.h"
#include "fabric/tcp/tcp.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::test {

/// Only a test that hangs reaches this limit.
inline bool wait_until(const std::function<bool()>& done,
                       std::chrono::seconds limit = std::chrono::seconds(20)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

struct TcpEnd {
  explicit TcpEnd(bool active = false, std::size_t bytes = 64 << 10, const TcpOptions& options = {},
                  bool polls_on = false)
      : device(open_tcp_device(options, &error)), cq(device->create_cq(256)) {
    host = device->alloc_memory(bytes, "test");
    region = device->reg_mr(host->data(), bytes, kAllRights | access_mw_bind, &error);
    qp = device->create_qp(
        *cq, {.send_wr_max = 64, .recv_wr_max = 64, .active = active, .polls_on = polls_on}, &error);
  }
  /// Polls until the queue has nothing to report.
  void poll() {
    Wc batch[16];
    while (const std::size_t count = cq->poll(batch))
      completions.insert(completions.end(), batch, batch + count);
  }
  bool until(const std::function<bool()>& done) {
    return wait_until([&] {
      poll();
      return done();
    });
  }
  void receive(std::uint64_t wr_id, std::uint64_t offset = 0, std::uint32_t bytes = 1024) {
    const RecvWr wr{wr_id, {region->addr() + offset, bytes, region->lkey()}};
    ASSERT_EQ(qp->post_recv({&wr, 1}), 1u);
  }
  Sge sge(std::uint64_t offset, std::uint32_t bytes) const {
    return {region->addr() + offset, bytes, region->lkey()};
  }
  void post(const SendWr& wr) { ASSERT_EQ(qp->post_send({&wr, 1}), 1u); }
  /// Returns the status of the completion with this id when it arrives. If none arrives, fails the test and
  /// returns `general_err`.
  WcStatus outcome(std::uint64_t wr_id) {
    WcStatus status = WcStatus::general_err;
    EXPECT_TRUE(until([&] {
      for (const Wc& wc : completions) {
        if (wc.wr_id != wr_id) continue;
        status = wc.status;
        return true;
      }
      return false;
    })) << "no completion of "
        << wr_id;
    return status;
  }
  bool untouched(std::uint8_t value) const {
    return host->data()[0] == std::byte{value} &&
           std::memcmp(host->data(), host->data() + 1, host->size() - 1) == 0;
  }

  std::string error;
  std::unique_ptr<Device> device;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<HostMemory> host;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<MemoryWindow> window = device->alloc_mw();
  std::unique_ptr<QueuePair> qp;
  std::vector<Wc> completions;
};

/// Plays the active side for `end`, without a queue pair.
class RawPeer {
 public:
  explicit RawPeer(TcpEnd& end) : end_(end) {
    EXPECT_TRUE(make_token(&token_));
    EXPECT_EQ(tcp::decode(end.qp->local_address(), &address_), "");
  }
  /// Connects the socket, and sends nothing. `receive_bytes` is the size of its receive buffer, or 0 for the
  /// system's default.
  void dial(int receive_bytes = 0) {
    sockaddr_storage name{};
    const socklen_t length = tcp::to_sockaddr(address_.endpoint, &name);
    fd_ = UniqueFd(::socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_bytes != 0) {
      ASSERT_EQ(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes), 0);
    }
    ASSERT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), length), 0);
  }
  void send_connect_message(const Token& to) {
    const ConnectMessage hello = make_connect_message(ConnectKind::hello, to, token_);
    send_all(&hello, sizeof hello);
  }
  /// Connects both sides.
  void connect(int receive_bytes = 0) {
    dial(receive_bytes);
    send_connect_message(address_.token);
    ASSERT_EQ(end_.qp->connect(blob()), "");
    ASSERT_TRUE(end_.until([&] { return end_.qp->state() == QpState::rts; })) << end_.qp->error();
    ASSERT_EQ(take(sizeof(ConnectMessage)).size(), sizeof(ConnectMessage));
  }
  std::vector<std::byte> blob() const { return tcp::encode({true, {}, token_}); }
  const tcp::Address& address() const { return address_; }
  Token& token() { return token_; }

  void send_all(const void* bytes, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    for (std::size_t sent = 0; sent < count;) {
      const ssize_t part = ::send(fd_.get(), from + sent, count - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (part > 0) sent += static_cast<std::size_t>(part);
      if (part < 0 && errno != EAGAIN) return;  // the other side has ended the connection
      end_.poll();
    }
  }
  /// Sends the bytes in a single write, without polling the other end.
  void send_unpolled(const std::vector<std::byte>& bytes) {
    ASSERT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  bool readable() const {
    std::byte first;
    return ::recv(fd_.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  }
  void send(const tcp::Header& header, const std::vector<std::byte>& payload = {}) {
    send_all(&header, sizeof header);
    send_all(payload.data(), payload.size());
  }
  /// Returns the next bytes, or fewer when the connection ends.
  std::vector<std::byte> take(std::size_t count) {
    std::vector<std::byte> bytes(count);
    std::size_t have = 0;
    wait_until([&] {
      end_.poll();
      const ssize_t got = ::recv(fd_.get(), bytes.data() + have, count - have, MSG_DONTWAIT);
      if (got > 0) have += static_cast<std::size_t>(got);
      return have == count || got == 0 || (got < 0 && errno != EAGAIN);
    });
    bytes.resize(have);
    return bytes;
  }
  /// Reads the next frame's header, and its payload into `payload`. Returns false when the connection has
  /// ended.
  bool take_frame(tcp::Header* header, std::vector<std::byte>* payload = nullptr) {
    const auto bytes = take(sizeof *header);
    if (bytes.size() < sizeof *header) return false;
    std::memcpy(static_cast<void*>(header), bytes.data(), sizeof *header);
    std::vector<std::byte> rest = take(header->bytes);
    const bool whole = rest.size() == header->bytes;
    if (payload != nullptr) *payload = std::move(rest);
    return whole;
  }
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  TcpEnd& end_;
  tcp::Address address_;
  Token token_{};
  UniqueFd fd_;
};

}  // namespace rdma_rpc::fabric::test

// The tcp fabric: an RDMA device made of TCP connections, for any two Linux hosts. Opened by the binding and
// by tests. After that everything goes through fabric.h, on the device's thread.
//
// A queue pair is one connection. The active side dials the address in the passive side's blob and names the
// wanted queue pair by a token that only a reader of the blob can know; any other device refuses the
// connection. The work of an RDMA NIC is done by the receiving side's CPU when its completion queue is
// polled: keys, rights and ranges are checked where the memory is, again before each system call that moves
// bytes. docs/wire/fabrics.md describes the frames.
//
// Properties of this fabric:
//  - poll() makes system calls and also serves the peer's READs and WRITEs: poll, or sleep on fd().
//  - A dead peer shows as the end of the connection, or when it has acknowledged nothing for
//    TcpOptions::peer_timeout_ms. A path that drops packets shows after seconds (queue/path_watch.h).
//  - READ access to memory can be revoked at any time: bytes already given to the kernel have been copied,
//    and the rest of a frame in progress is copied then.
//  - A window that is invalidated while a response to a READ of it waits for the network ends the
//    connection, since the frame in progress can be neither finished nor cut short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// The known state of one direction of a connection's path.
struct PathState {
  /// How often the same bytes have been resent, or the peer has been asked whether it takes more, without an
  /// answer of the peer's kernel.
  std::uint32_t unanswered = 0;
  std::uint64_t bytes = 0;      ///< bytes given to the kernel and not acknowledged
  std::uint32_t silent_ms = 0;  ///< time since anything came from the peer's kernel
};

struct TcpOptions {
  /// Where to accept the peers' connections: an IPv4 or IPv6 address of this host, in numbers. Bound when the
  /// first passive queue pair is made, at a port that the system chooses. When empty, another part of the
  /// process listens and hands connections over (hand_off(), acceptor.h); the peer must then be given the
  /// address (tcp_address_via).
  std::string host = "127.0.0.1";
  std::uint32_t connect_timeout_ms = 5'000;
  /// A live peer that is stopped for longer than this, with data in flight, counts as dead.
  std::uint32_t peer_timeout_ms = 60'000;
  /// Limit of connections that have not named a queue pair yet; beyond it the oldest is closed.
  std::uint32_t pending_max = 64;
  /// Bytes in the kernel's send buffer that a small frame may have to wait for (TCP_NOTSENT_LOWAT).
  std::uint32_t unsent_max = 128 << 10;
  /// Interval at which queue pairs that have sent something check whether it arrives.
  std::uint32_t path_look_ms = 1'000;
  /// Replaces the kernel's information (TCP_INFO) about the socket `fd`; for tests.
  std::function<PathState(int fd)> path_state{};
};

/// Opens a device. Returns null when the system refuses; `error` then says what and why.
std::unique_ptr<Device> open_tcp_device(const TcpOptions& options, std::string* error);

/// Returns a passive queue pair's address with another endpoint to dial (a proxy, a tunnel): `host` in
/// numbers, and `port`. Returns nothing, with the reason in `error`, when one of them is invalid.
std::vector<std::byte> tcp_address_via(std::span<const std::byte> address, const std::string& host,
                                       std::uint16_t port, std::string* error);

}  // namespace rdma_rpc::fabric

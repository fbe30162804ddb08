// The tcp fabric is an RDMA device made of TCP connections, for any two Linux hosts. The binding and tests
// open it, and then use it through fabric.h, on the device's thread.
//
// A queue pair is one connection. The active side connects to the endpoint in the passive side's blob and
// names the wanted queue pair by a token that only a reader of the blob can know. Any other device refuses
// the connection. When its completion queue is polled, the receiving side's CPU does the work of an RDMA NIC.
// The CPU checks keys, rights and ranges on the host of the memory, and checks them again before each system
// call that moves bytes. docs/wire/fabrics.md describes the frames.
//
// Properties of this fabric:
//  - poll() makes system calls and also serves the peer's READs and WRITEs. The user must therefore poll, or
//    sleep on fd().
//  - A peer counts as dead when the connection ends, or when the peer has acknowledged nothing for
//    TcpOptions::peer_timeout_ms. The fabric notices a path that drops packets after seconds
//    (queue/path_watch.h).
//  - READ access to memory can be revoked at any time: bytes that were given to the kernel have been copied,
//    and the rest of a frame in progress is copied at the revocation.
//  - When a window is invalidated while a response to a READ of it waits for the network, the connection
//    ends, because the frame in progress cannot be finished, and cannot be cut short.
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
  /// Number of times that one of two events has happened without an answer of the peer's kernel: the same
  /// bytes were sent again, or a probe asked the peer whether it accepts more bytes.
  std::uint32_t unanswered = 0;
  std::uint64_t bytes = 0;      ///< bytes that were given to the kernel and are not acknowledged
  std::uint32_t silent_ms = 0;  ///< time since anything arrived from the peer's kernel
};

struct TcpOptions {
  /// The numeric IPv4 or IPv6 address of this host at which the peers' connections are accepted. The address
  /// is bound when the first passive queue pair is created, at a port that the system chooses. When the text
  /// is empty, another part of the process listens and hands connections over (hand_off(), acceptor.h). The
  /// peer must then be given the address (tcp_address_via).
  std::string host = "127.0.0.1";
  std::uint32_t connect_timeout_ms = 5'000;
  /// Limit of the time for which data in flight may stay unacknowledged. A live peer that is stopped for
  /// longer counts as dead.
  std::uint32_t peer_timeout_ms = 60'000;
  /// Limit of connections that have not named a queue pair yet. Beyond this limit, the oldest connection is
  /// closed.
  std::uint32_t pending_max = 64;
  /// Number of bytes in the kernel's send buffer for which a small frame may have to wait
  /// (TCP_NOTSENT_LOWAT).
  std::uint32_t unsent_max = 128 << 10;
  /// Interval at which queue pairs that have sent something check whether it has arrived.
  std::uint32_t path_look_ms = 1'000;
  /// Replaces the kernel's information (TCP_INFO) about the socket `fd`; for tests.
  std::function<PathState(int fd)> path_state{};
};

/// Opens a device. Returns null when the system refuses; `error` then contains what was refused, and why.
std::unique_ptr<Device> open_tcp_device(const TcpOptions& options, std::string* error);

/// Returns the address of a passive queue pair with its endpoint replaced by `host` (a numeric address) and
/// `port`, for a proxy or tunnel. Returns an empty address, with the reason in `error`, when an argument is
/// invalid.
std::vector<std::byte> tcp_address_via(std::span<const std::byte> address, const std::string& host,
                                       std::uint16_t port, std::string* error);

}  // namespace rdma_rpc::fabric

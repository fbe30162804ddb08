// The tcp fabric: an RDMA device made of TCP connections, for any two Linux hosts. Opened by the binding and
// by tests. Everything after the opening goes through fabric.h, on the device's thread.
//
// A queue pair is one connection. The active side dials the address in the passive side's blob, says which
// queue pair it wants by a token that only a reader of the blob can know, and is refused by any other device.
// What an RDMA NIC does, the receiving side's CPU does when its completion queue is polled: keys, rights and
// ranges are checked where the memory is, again before each system call that moves bytes.
// docs/wire/fabrics.md has the frames.
//
// What is particular to this fabric:
//  - poll() makes system calls, and it is what serves the peer's READs and WRITEs too: poll, or sleep on
//  fd().
//  - A peer that is gone shows as the end of the connection, or when it has acknowledged nothing for
//    TcpOptions::peer_timeout_ms. A path that swallows packets shows after seconds (queue/path_watch.h).
//  - Memory that must not be read any more can be withdrawn at any time: what the kernel has is copied, and
//  of
//    a frame under way the rest is.
//  - A window that is taken back while an answer to a READ of it waits for the network ends the connection,
//  since
//    the frame under way can be neither finished nor cut short.
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

/// What is known of the way from one end of a connection to the other.
struct PathState {
  /// So many times the same bytes have been sent again, or the peer has been asked whether it takes more,
  /// without any answer of the peer's kernel.
  std::uint32_t unanswered = 0;
  std::uint64_t bytes = 0;      ///< given to the kernel and not acknowledged
  std::uint32_t silent_ms = 0;  ///< so long nothing at all has come from the peer's kernel
};

struct TcpOptions {
  /// Where the peers' connections come in: an IPv4 or IPv6 address of this host, in numbers. Bound when the
  /// first passive queue pair is made, at a port of the system's choice. Empty: somebody else listens, and
  /// hands over what comes (hand_off(), acceptor.h); the peer has to be told where that is (tcp_address_via).
  std::string host = "127.0.0.1";
  std::uint32_t connect_timeout_ms = 5'000;
  /// A peer that lives but is stopped for longer, with data on its way, is taken for dead.
  std::uint32_t peer_timeout_ms = 60'000;
  /// Connections that have not said yet which queue pair they want; beyond that the oldest is closed.
  std::uint32_t pending_max = 64;
  /// Bytes of the kernel's send buffer that a small frame may have to wait behind (TCP_NOTSENT_LOWAT).
  std::uint32_t unsent_max = 128 << 10;
  /// How often queue pairs that have sent something look whether it arrives.
  std::uint32_t path_look_ms = 1'000;
  /// Tells what the kernel would (TCP_INFO) of the socket `fd`; for tests.
  std::function<PathState(int fd)> path_state{};
};

/// Opens a device. Null when the system refuses; `error` then says what and why.
std::unique_ptr<Device> open_tcp_device(const TcpOptions& options, std::string* error);

/// A passive queue pair's address as it is to be dialled through something that stands in between (a proxy, a
/// tunnel): `host` in numbers, `port`. Empty, and why, when one of the two is no address.
std::vector<std::byte> tcp_address_via(std::span<const std::byte> address, const std::string& host,
                                       std::uint16_t port, std::string* error);

}  // namespace rdma_rpc::fabric

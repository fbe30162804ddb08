// Encodes and decodes the address of a queue pair in the form that the sideband connection carries: a fixed
// size, little endian. Addresses are made and read when queue pairs connect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/versions.h"

namespace rdma_rpc::fabric::verbs {

/// Flags for the ways in which a queue pair can be connected, and for the kind of its device.
enum Way : std::uint8_t {
  way_cm = 1u << 0,        ///< by rdma_cm
  way_sideband = 1u << 1,  ///< by the content of the two addresses
  way_iwarp = 1u << 2,     ///< the device is an iWARP one, which can connect only to iWARP devices
  way_pauses = 1u << 3,  ///< (not a way to connect:) it may answer "not ready" while it handles a page fault
  way_uc = 1u << 4,      ///< (not a way to connect:) the queue pair is of type UC, which connects to UC alone
};

/// A random token that names one queue pair to rdma_cm's listener. Only a peer that has seen the queue pair's
/// address knows the token.
using Token = std::array<std::uint8_t, 16>;

struct Address {
  std::uint8_t version = kVerbsVersion;
  std::uint8_t ways = 0;
  std::uint8_t active = 0;  ///< 1 on the side that requests the connection
  std::uint8_t mtu = 0;     ///< MTU of the port, as enum ibv_mtu
  std::uint32_t qp_num = 0;
  std::uint32_t psn = 0;    ///< number of its first packet, from a CSPRNG; not on iWARP
  std::uint16_t reads = 0;  ///< number of the peer's READs served at once

  // The following fields are for rdma_cm.
  std::uint16_t ip_port = 0;          ///< passive side: port of the listener
  std::array<std::uint8_t, 16> ip{};  ///< IPv6; IPv4 as ::ffff:a.b.c.d
  Token token{};

  // The following fields are for the sideband.
  std::uint8_t link_layer = 0;  ///< as IBV_LINK_LAYER_*
  std::uint8_t gid_type = 0;    ///< as enum ibv_gid_type
  std::uint16_t lid = 0;
  std::array<std::uint8_t, 16> gid{};

  /// This field is not part of the encoded address. True when the peer is a listener of another program, of
  /// which only the IP address and port are known.
  bool other = false;
};
inline constexpr std::size_t kAddressBytes = 4 + 4 + 4 + 2 + 2 + 16 + 16 + 2 + 2 + 4 + 16;

std::vector<std::byte> encode(const Address& address);
/// Checks a peer's bytes. Returns "" when they are an address to which `mine` can be connected, and sets
/// `way`. Otherwise returns the reason why `mine` cannot be connected to them.
std::string decode(std::span<const std::byte> bytes, const Address& mine, Address* address, Way* way);

/// The address of a listener of another program: a magic, an IPv6 address (IPv4 as ::ffff:a.b.c.d) and a
/// port, little endian. Applications make it (runtime/verbs/listener-address.ts).
inline constexpr std::size_t kListenerBytes = 4 + 16 + 2;
bool names_listener(std::span<const std::byte> bytes);
/// Works like decode(), for bytes that name a listener.
std::string decode_listener(std::span<const std::byte> bytes, const Address& mine, Address* address);

}  // namespace rdma_rpc::fabric::verbs

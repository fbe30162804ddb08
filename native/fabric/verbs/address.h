// The address of a queue pair as it travels over the sideband: fixed size, little endian. Made and read when
// queue pairs connect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rdma_rpc::fabric::verbs {

struct Address {
  std::uint8_t version = 1;
  std::uint8_t mtu = 0;         ///< of the port, as enum ibv_mtu
  std::uint8_t link_layer = 0;  ///< as IBV_LINK_LAYER_*
  std::uint8_t gid_type = 0;    ///< as enum ibv_gid_type
  std::uint32_t qp_num = 0;
  std::uint32_t psn = 0;
  std::uint16_t lid = 0;
  std::uint16_t reads = 0;  ///< READs of the peer that are served at once
  std::array<std::uint8_t, 16> gid{};
};
inline constexpr std::size_t kAddressBytes = 4 + 4 + 4 + 4 + 2 + 2 + 16;

std::vector<std::byte> encode(const Address& address);
/// Checks a peer's bytes. Empty when they are an address that `mine` can be connected to, otherwise why not.
std::string decode(std::span<const std::byte> bytes, const Address& mine, Address* address);

}  // namespace rdma_rpc::fabric::verbs

// The address of a libibverbs queue pair in the form that is sent to the peer: of fixed size and host byte
// order, since both sides have the same version. Made and read when endpoints connect.
#pragma once

#include <array>
#include <cstdint>

namespace rdma_rpc::perf::bare {

struct Address {
  std::uint32_t magic = 0x31707262;  ///< any other value is not an address of ours
  std::uint32_t qp_num = 0;
  std::uint32_t psn = 0;
  std::uint16_t lid = 0;
  std::uint8_t transport = 0;   ///< as Transport
  std::uint8_t link_layer = 0;  ///< as IBV_LINK_LAYER_*
  std::uint8_t mtu = 0;         ///< as enum ibv_mtu
  std::uint8_t reads = 0;       ///< READs and atomic operations served at once
  std::array<std::uint8_t, 2> unused{};
  std::array<std::uint8_t, 16> gid{};
};
static_assert(sizeof(Address) == 36);

}  // namespace rdma_rpc::perf::bare

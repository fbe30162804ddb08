// Encodes and decodes the address of a libibverbs queue pair in the form that is sent to the peer. The
// address has a fixed size and host byte order, because both sides have the same version. Addresses are
// created and read when endpoints connect.
#pragma once

#include <array>
#include <cstdint>

namespace rdma_rpc::perf::bare {

struct Address {
  std::uint32_t magic = 0x31707262;  ///< with any other value the bytes are not such an address
  std::uint32_t qp_num = 0;
  std::uint32_t psn = 0;
  std::uint16_t lid = 0;
  std::uint8_t transport = 0;   ///< a value of Transport
  std::uint8_t link_layer = 0;  ///< one of IBV_LINK_LAYER_*
  std::uint8_t mtu = 0;         ///< a value of enum ibv_mtu
  std::uint8_t reads = 0;       ///< number of READs and atomic operations served at once
  std::array<std::uint8_t, 2> unused{};
  std::array<std::uint8_t, 16> gid{};
};
static_assert(sizeof(Address) == 36);

}  // namespace rdma_rpc::perf::bare

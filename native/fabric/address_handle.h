// Declares the destinations of datagrams: address handles, GIDs, and the header in front of each received
// datagram. This file is part of fabric.h and is used on the same thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rdma_rpc::fabric {

/// A global identifier of a port, or of a multicast group (its first byte is 0xff).
using Gid = std::array<std::byte, 16>;
inline bool is_multicast(const Gid& gid) { return gid[0] == std::byte{0xff}; }
/// Value of SendWr::Datagram::remote_qpn for a datagram to a multicast group.
inline constexpr std::uint32_t kMulticastQpn = 0xffffff;

/// The global routing header that lies at the beginning of a UD receive, in network byte order. On RoCE v2
/// over IPv4 the last 20 of its bytes are the IPv4 header, and the other bytes are undefined.
inline constexpr std::uint32_t kGrhBytes = 40;
inline constexpr std::uint32_t kGrhSourceGid = 8, kGrhDestinationGid = 24;  ///< offsets in the header

/// The same attributes as in `struct ibv_ah_attr`.
struct AhAttr {
  Gid gid{};              ///< the peer's port (Device::gid()), or a multicast group
  std::uint16_t lid = 0;  ///< InfiniBand: the peer's port; 0 on other networks
  std::uint8_t service_level = 0, traffic_class = 0, hop_limit = 64;
  std::uint32_t flow_label = 0;
};

/// Device::create_ah() creates these objects.
class AddressHandle {
 public:
  virtual ~AddressHandle() = default;  ///< every datagram that names the handle must have completed
  AddressHandle(const AddressHandle&) = delete;
  AddressHandle& operator=(const AddressHandle&) = delete;
  const AhAttr& attr() const { return attr_; }

 protected:
  explicit AddressHandle(const AhAttr& attr) : attr_(attr) {}

 private:
  const AhAttr attr_;
};

}  // namespace rdma_rpc::fabric

// See address.h.
#include "fabric/verbs/address/address.h"

#include <bit>
#include <cstring>

#include "fabric/verbs/address/ip_address.h"

namespace rdma_rpc::fabric::verbs {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::uint32_t kMagic = 0x42565252;          // "RRVB"
constexpr std::uint32_t kListenerMagic = 0x4c565252;  // "RRVL"
constexpr std::uint32_t kNumberMax = 0xffffff;
/// The value of enum ibv_mtu for 4096 bytes. rdma_cm lowers it to the MTU of the path.
constexpr std::uint8_t kLargestMtu = 5;

/// Calls `each` with each field, in the order on the wire.
template <typename A, typename Each>
void fields(A& a, Each&& each) {
  each(a.version), each(a.ways), each(a.active), each(a.mtu);
  each(a.qp_num), each(a.psn), each(a.reads);
  each(a.ip_port), each(a.ip), each(a.token);
  each(a.link_layer), each(a.gid_type), each(a.lid), each(a.gid);
}

std::string ways_of(std::uint8_t ways) {
  return (ways & way_cm) == 0         ? "over the sideband only"
         : (ways & way_sideband) == 0 ? "by rdma_cm only"
                                      : "by rdma_cm or over the sideband";
}

std::string check_cm(const Address& a, const Address& mine) {
  if (mine.active == 0) return "";
  const IpAddress listener{a.ip, a.ip_port, 0};
  return listener.is_host() && a.ip_port != 0 ? "" : "the peer's rdma_cm address is not one of a host";
}

std::string check_sideband(const Address& a, const Address& mine) {
  if (a.link_layer != mine.link_layer) return "the peer's port has another link layer";
  if (a.gid_type != mine.gid_type) return "the peer's GID has another type (option gidIndex)";
  return "";
}

}  // namespace

std::vector<std::byte> encode(const Address& a) {
  std::vector<std::byte> bytes(kAddressBytes);
  std::byte* to = bytes.data();
  const auto put = [&to](const auto& value) {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  };
  put(kMagic);
  fields(a, put);
  return bytes;
}

std::string decode(std::span<const std::byte> bytes, const Address& mine, Address* address, Way* way) {
  // Every version of this fabric begins with the magic and the version; the size of the rest may differ.
  std::uint32_t magic = 0;
  if (bytes.size() > sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
  if (magic == kMagic && bytes[sizeof magic] != std::byte{mine.version}) {
    return "the peer has version " + std::to_string(static_cast<int>(bytes[sizeof magic])) +
           " of this fabric, this side version " + std::to_string(mine.version) +
           "; use the same rdma-rpc release on both sides";
  }
  if (bytes.size() != kAddressBytes) return "not the address of a verbs queue pair: wrong length";
  const std::byte* from = bytes.data();
  const auto get = [&from](auto& value) {
    std::memcpy(&value, from, sizeof value);
    from += sizeof value;
  };
  Address& a = *address;
  get(magic);
  fields(a, get);
  if (magic != kMagic) return "not the address of a verbs queue pair";
  if ((a.ways & ~(way_cm | way_sideband | way_iwarp | way_pauses | way_uc)) != 0 || a.active > 1 ||
      a.mtu < 1 || a.mtu > 5)
    return "a field of the peer's verbs address is out of range";
  if (a.qp_num == 0 || a.qp_num > kNumberMax || a.psn > kNumberMax)
    return "the peer's queue pair number or PSN is out of range";
  if (a.active == mine.active) return "both sides ask for the connection, or neither does";
  if (((a.ways ^ mine.ways) & way_iwarp) != 0)
    return std::string("this device speaks ") + ((mine.ways & way_iwarp) != 0
                                                     ? "iWARP, the peer's device does not"
                                                     : "InfiniBand or RoCE, the peer's device iWARP");
  if (((a.ways ^ mine.ways) & way_uc) != 0)
    return std::string("this queue pair is of type ") + ((mine.ways & way_uc) != 0 ? "UC" : "RC") +
           ", the peer's of another type";
  const int common = a.ways & mine.ways & (way_cm | way_sideband);
  if (common == 0)
    return "this side connects " + ways_of(mine.ways) + ", the peer " + ways_of(a.ways) + " (option connect)";
  *way = (common & way_cm) != 0 ? way_cm : way_sideband;
  return *way == way_cm ? check_cm(a, mine) : check_sideband(a, mine);
}

bool names_listener(std::span<const std::byte> bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() != kListenerBytes) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kListenerMagic;
}

std::string decode_listener(std::span<const std::byte> bytes, const Address& mine, Address* address) {
  if (mine.active == 0) return "a listener waits for connections: this side must ask for one";
  if ((mine.ways & way_uc) != 0) return "a listener takes RC connections only";
  if ((mine.ways & way_cm) == 0) return "a listener needs rdma_cm, which this side does not use (connect)";
  Address& a = *address;
  std::memcpy(a.ip.data(), &bytes[4], a.ip.size());
  std::memcpy(&a.ip_port, &bytes[20], sizeof a.ip_port);
  a.other = true;
  a.ways = static_cast<std::uint8_t>(mine.ways & (way_cm | way_iwarp));
  a.mtu = kLargestMtu;
  a.reads = mine.reads;
  return check_cm(a, mine);
}

}  // namespace rdma_rpc::fabric::verbs

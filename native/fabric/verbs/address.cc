// See address.h.
#include "fabric/verbs/address.h"

#include <bit>
#include <cstring>

namespace rdma_rpc::fabric::verbs {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::uint32_t kMagic = 0x42565252;  // "RRVB"
constexpr std::uint32_t kNumberMax = 0xffffff;

}  // namespace

std::vector<std::byte> encode(const Address& a) {
  std::vector<std::byte> bytes(kAddressBytes);
  std::byte* to = bytes.data();
  const auto put = [&to](const auto& value) {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  };
  put(kMagic), put(a.version), put(a.mtu), put(a.link_layer), put(a.gid_type);
  put(a.qp_num), put(a.psn), put(a.lid), put(a.reads), put(a.gid);
  return bytes;
}

std::string decode(std::span<const std::byte> bytes, const Address& mine, Address* address) {
  if (bytes.size() != kAddressBytes) return "not the address of a verbs queue pair: wrong length";
  const std::byte* from = bytes.data();
  const auto get = [&from](auto& value) {
    std::memcpy(&value, from, sizeof value);
    from += sizeof value;
  };
  Address& a = *address;
  std::uint32_t magic = 0;
  get(magic), get(a.version), get(a.mtu), get(a.link_layer), get(a.gid_type);
  get(a.qp_num), get(a.psn), get(a.lid), get(a.reads), get(a.gid);
  if (magic != kMagic) return "not the address of a verbs queue pair";
  if (a.version != mine.version) return "the peer's verbs address has another version";
  if (a.mtu < 1 || a.mtu > 5) return "the peer's MTU is none";
  if (a.link_layer != mine.link_layer) return "the peer's port has another link layer";
  if (a.gid_type != mine.gid_type) return "the peer's GID has another type (option gidIndex)";
  if (a.qp_num == 0 || a.qp_num > kNumberMax || a.psn > kNumberMax)
    return "the peer's queue pair number or PSN is none";
  return "";
}

}  // namespace rdma_rpc::fabric::verbs

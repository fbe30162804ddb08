// See compatibility.h. The peer can change its header at any time, so each value of the header is read only
// once.
#include "fabric/shm/connect/compatibility.h"

#include <cstring>

namespace rdma_rpc::fabric::shm {
namespace {

constexpr const char* kRemedy =
    "; use the same rdma-rpc release on both sides, or the fabric tcp at a host:port";

std::string other_version(std::uint32_t version) {
  return "shm: the peer has layout version " + std::to_string(version) +
         " of shared memory, this side version " + std::to_string(kShmVersion) + kRemedy;
}

}  // namespace

std::string why_not_read(std::span<const std::byte> address) {
  struct {
    std::uint32_t magic, version;
  } first{};
  if (address.size() >= sizeof first) std::memcpy(&first, address.data(), sizeof first);
  if (first.magic != kMagic) return "shm: the peer's address is not an shm address";
  return first.version == kShmVersion ? "" : other_version(first.version);
}

std::string why_not_read(const Header& header, const AddressBlob& address, const char* foreign) {
  const std::uint32_t magic = header.magic, version = header.version, shape = header.shape;
  if (magic == kMagic && version != kShmVersion) return other_version(version);
  if (magic != kMagic || header.token != address.device_token) return foreign;
  // The value 0 comes from a build before 0.1.0: its version 3 has no such field.
  if (shape == kShape || shape == 0) return {};
  return "shm: the peer has layout version " + std::to_string(version) +
         " of shared memory with other sizes than this side: one of the two builds was changed without a new "
         "version" +
         kRemedy;
}

}  // namespace rdma_rpc::fabric::shm

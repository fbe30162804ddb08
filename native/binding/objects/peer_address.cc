// See peer_address.h.
#include "binding/objects/peer_address.h"

#include <cstdint>
#include <cstring>

#include "fabric/shm/shm.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::binding {

std::vector<std::byte> read_peer_address(const Napi::CallbackInfo& info, std::string* why) {
  const auto given = info[1].As<Napi::Uint8Array>();
  const auto* bytes = reinterpret_cast<const std::byte*>(given.Data());
  if (!info[2].IsString()) return {bytes, bytes + given.ByteLength()};
  if (!info[3].IsNumber())
    return fabric::shm_address_via({bytes, given.ByteLength()}, info[2].As<Napi::String>().Utf8Value(), why);
  const auto port = static_cast<std::uint16_t>(info[3].As<Napi::Number>().Uint32Value());
  return fabric::tcp_address_via({bytes, given.ByteLength()}, info[2].As<Napi::String>().Utf8Value(), port,
                                 why);
}

Napi::Uint8Array own_address(Napi::Env env, const std::vector<std::byte>& address) {
  auto bytes = Napi::Uint8Array::New(env, address.size());
  std::memcpy(bytes.Data(), address.data(), address.size());
  return bytes;
}

std::optional<fabric::FirstWords> read_first_words(const Napi::CallbackInfo& info, std::string* why) {
  if (!info[4].IsTypedArray()) return std::nullopt;
  const auto given = info[4].As<Napi::Uint8Array>();
  fabric::FirstWords words;
  if (given.ByteLength() != sizeof words) {
    *why = "the first bytes for the fabric have a wrong length";
    return std::nullopt;
  }
  std::memcpy(&words, given.Data(), sizeof words);
  return words;
}

}  // namespace rdma_rpc::binding

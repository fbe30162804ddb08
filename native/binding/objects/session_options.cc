// See session_options.h.
#include "binding/objects/session_options.h"

#include <array>
#include <cstring>
#include <string>

#include "binding/objects/given.h"
#include "seal/libcrypto.h"

namespace rdma_rpc::binding {
namespace {

constexpr const char* kAes = "aes-256-gcm";
constexpr const char* kChaCha = "chacha20-poly1305";

/// Reads the four keys in this order: for frames that this side sends, for frames that it receives, for bulk
/// data that it sends, and for bulk data that it receives.
session::SealOptions read_seal(const Napi::Object& given, std::string* error) {
  session::SealOptions seal;
  seal.cipher = given.Get("cipher").As<Napi::String>().Utf8Value() == kAes ? seal::Cipher::aes_256_gcm
                                                                           : seal::Cipher::chacha20_poly1305;
  const auto keys = given.Get("keys").As<Napi::Uint8Array>();
  const std::array all{&seal.send_frames, &seal.receive_frames, &seal.send_bulk, &seal.receive_bulk};
  std::size_t at = 0;
  for (seal::Key* key : all) {
    // A wrong length must fail, because keys of zeros would protect nothing.
    if (keys.ByteLength() != all.size() * key->size()) *error = "sealing keys of a wrong length";
    if (!error->empty()) return seal;
    std::memcpy(key->data(), keys.Data() + at, key->size());
    at += key->size();
  }
  return seal;
}

}  // namespace

session::SessionOptions read_session_options(const Napi::Object& given, std::string* error) {
  session::SessionOptions options;
  options.client = given.Get("role").As<Napi::String>().Utf8Value() == "client";
  if (given.Has("active")) options.active = given.Get("active").ToBoolean();
  options.inflight_max = u32(given, "inflightMax");
  if (given.Has("callSlots")) options.call_slots = u32(given, "callSlots");
  options.credit_pool = given.Get("creditPool").ToBoolean();
  options.max_message_bytes = u32(given, "messageMaxBytes");
  options.peer_max_message_bytes = u32(given, "peerMessageMaxBytes");
  if (given.Has("peerSlotBytes")) options.peer_slot_bytes = u32(given, "peerSlotBytes");
  if (given.Has("peerTakesSegments"))
    options.peer_takes_segments = given.Get("peerTakesSegments").As<Napi::Boolean>();
  if (given.Has("peerTakesInline"))
    options.peer_takes_inlined = given.Get("peerTakesInline").As<Napi::Boolean>();
  if (given.Has("arenaBytesMax"))
    options.arena_max_bytes = static_cast<std::size_t>(u64(given, "arenaBytesMax"));
  if (const Napi::Value limits = given.Get("timeLimits"); limits.IsObject()) {
    const auto times = limits.As<Napi::Object>();
    if (times.Has("defaultUs")) options.timeout_default_us = u64(times, "defaultUs");
    if (times.Has("maxUs")) options.timeout_max_us = u64(times, "maxUs");
  }
  if (given.Has("connectTimeoutMs")) options.connect_timeout_ms = u32(given, "connectTimeoutMs");
  const Napi::Value seal = given.Get("seal");
  if (seal.IsObject()) options.seal = read_seal(seal.As<Napi::Object>(), error);
  return options;
}

Napi::Array cipher_names(Napi::Env env) {
  auto names = Napi::Array::New(env);
  for (const seal::Cipher cipher : seal::ciphers()) {
    names.Set(names.Length(), Napi::String::New(env, cipher == seal::Cipher::aes_256_gcm ? kAes : kChaCha));
  }
  return names;
}

}  // namespace rdma_rpc::binding

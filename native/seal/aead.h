// What a session seals its bytes with: two functions, in place. The one implementation takes them from a
// library that is there at run time (libcrypto.h); the core needs no library to build. Used by sessions, on
// the context's thread; an Aead is used by one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rdma_rpc::seal {

enum class Cipher : std::uint8_t { aes_256_gcm = 1, chacha20_poly1305 = 2 };

inline constexpr std::size_t kTagBytes = 16;
using Key = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 12>;

/// One key, in one direction. A nonce may be used once.
class Aead {
 public:
  virtual ~Aead() = default;
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;
  /// Writes the tag to `tag`. False: the library has failed, and the bytes mean nothing.
  virtual bool seal(const Nonce& nonce, std::span<std::byte> bytes, std::byte* tag) = 0;
  /// False: these are not the bytes that were sealed with that nonce; what is left of them means nothing.
  virtual bool open(const Nonce& nonce, std::span<std::byte> bytes, const std::byte* tag) = 0;

 protected:
  Aead() = default;
};

}  // namespace rdma_rpc::seal

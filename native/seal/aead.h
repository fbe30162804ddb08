// Declares the cipher with which a session seals its bytes: two functions that work in place. The one
// implementation takes them from a library that is found at run time (libcrypto.h), so that the core can be
// built without it. Sessions use it on the context's thread. Only one thread may use an Aead.
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

/// A key for one direction. A nonce may be used only once.
class Aead {
 public:
  virtual ~Aead() = default;
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;
  /// Encrypts, and writes the authentication tag to `tag`. Returns false when the library has failed; the
  /// bytes are then meaningless.
  virtual bool seal(const Nonce& nonce, std::span<std::byte> bytes, std::byte* tag) = 0;
  /// Decrypts. Returns false when these are not the bytes that were sealed with `nonce`; the bytes are then
  /// meaningless.
  virtual bool open(const Nonce& nonce, std::span<std::byte> bytes, const std::byte* tag) = 0;

 protected:
  Aead() = default;
};

}  // namespace rdma_rpc::seal

// The seals of one session: who counts what. Frames are sealed in the order in which they are sent, and
// opened in the order in which they come, so their nonces are counters that nobody sends. A bulk message is
// sealed in chunks under another key; its nonces are its number, which the sealed frame that tells of it
// carries, and the chunk's. Owned by Link, used by the send queue and both endpoints, on the context's
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "seal/aead.h"

namespace rdma_rpc::session {

/// Keys of one direction each; none is ever used for a second session.
struct SealOptions {
  seal::Cipher cipher = seal::Cipher::aes_256_gcm;
  seal::Key send_frames{}, receive_frames{}, send_bulk{}, receive_bulk{};
};

/// Plain bytes of a bulk message under one seal.
inline constexpr std::uint32_t kSealChunkBytes = 64 * 1024;
/// Behind the metadata of a frame whose message is elsewhere: the number of that message.
inline constexpr std::uint32_t kBulkNumberBytes = 8;

/// What a message of so many bytes takes where the peer can see it: itself, and its tags behind it.
constexpr std::uint64_t sealed_bytes(std::uint64_t plain) {
  return plain + (plain + kSealChunkBytes - 1) / kSealChunkBytes * seal::kTagBytes;
}
/// The other way round; 0 for a length that nothing has.
constexpr std::uint32_t plain_bytes(std::uint32_t sealed) {
  constexpr std::uint64_t kBoth = kSealChunkBytes + seal::kTagBytes;
  const std::uint64_t chunks = (sealed + kBoth - 1) / kBoth;
  if (chunks * seal::kTagBytes >= sealed) return 0;
  const std::uint64_t plain = sealed - chunks * seal::kTagBytes;
  return sealed_bytes(plain) == sealed ? static_cast<std::uint32_t>(plain) : 0;
}

class Sealing {
 public:
  /// Null, and why, when the cipher cannot be had.
  static std::unique_ptr<Sealing> open(const SealOptions& options, std::string* error);

  /// The next frame out: kTagBytes are written behind it. Returns its new length.
  std::uint32_t seal_frame(std::byte* frame, std::uint32_t bytes);
  /// The next frame in. Returns its length without the tag; none: it is not the one that the peer has sent.
  std::optional<std::uint32_t> open_frame(std::byte* frame, std::uint32_t bytes);

  /// Seals `plain` bytes; `data` has room for sealed_bytes() of them. Returns the number of the message.
  std::uint64_t seal_bulk(std::byte* data, std::uint32_t plain);
  /// `shared`: others may still write to `data`, so each chunk is opened in memory of our own.
  bool open_bulk(std::byte* data, std::uint32_t plain, std::uint64_t number, bool shared);

 private:
  Sealing() = default;

  std::unique_ptr<seal::Aead> send_frames_, receive_frames_, send_bulk_, receive_bulk_;
  std::uint64_t sent_ = 0, received_ = 0, messages_ = 0;
  std::vector<std::byte> chunk_;
};

}  // namespace rdma_rpc::session

// Seals the frames and bulk messages of one session. Frames are sealed in the order in which they are sent,
// and opened in the order in which they arrive. Therefore their nonces are counters, which are not sent. A
// bulk message is sealed in chunks under another key. The nonce of a chunk consists of the number of the
// message, which its sealed frame contains, and the number of the chunk. Link owns this object; the send
// queue and both endpoints use it on the context's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "seal/aead.h"

namespace rdma_rpc::session {

/// Each key is used for one direction and one session only.
struct SealOptions {
  seal::Cipher cipher = seal::Cipher::aes_256_gcm;
  seal::Key send_frames{}, receive_frames{}, send_bulk{}, receive_bulk{};
};

/// Number of plaintext bytes of a bulk message under one seal.
inline constexpr std::uint32_t kSealChunkBytes = 64 * 1024;
/// Length of the message number, which follows the metadata of a frame whose message is outside of the frame.
inline constexpr std::uint32_t kBulkNumberBytes = 8;

/// Returns the length of a sealed message: its bytes followed by its tags.
constexpr std::uint64_t sealed_bytes(std::uint64_t plain) {
  return plain + (plain + kSealChunkBytes - 1) / kSealChunkBytes * seal::kTagBytes;
}
/// Returns the plaintext length for a sealed length, or 0 for an impossible length.
constexpr std::uint32_t plain_bytes(std::uint32_t sealed) {
  constexpr std::uint64_t kBoth = kSealChunkBytes + seal::kTagBytes;
  const std::uint64_t chunks = (sealed + kBoth - 1) / kBoth;
  if (chunks * seal::kTagBytes >= sealed) return 0;
  const std::uint64_t plain = sealed - chunks * seal::kTagBytes;
  return sealed_bytes(plain) == sealed ? static_cast<std::uint32_t>(plain) : 0;
}

class Sealing {
 public:
  /// Returns null, with the reason, when the cipher is not available.
  static std::unique_ptr<Sealing> open(const SealOptions& options, std::string* error);

  /// Seals the next outgoing frame and writes kTagBytes behind it. Returns the new length of the frame.
  std::uint32_t seal_frame(std::byte* frame, std::uint32_t bytes);
  /// Opens the next incoming frame. Returns its length without the tag, or std::nullopt when the frame was
  /// forged or changed.
  std::optional<std::uint32_t> open_frame(std::byte* frame, std::uint32_t bytes);

  /// Seals `plain` bytes. `data` must have room for sealed_bytes(plain). Returns the number of the message.
  std::uint64_t seal_bulk(std::byte* data, std::uint32_t plain);
  /// Decrypts a bulk message in place. Returns false when it was forged or changed. `shared` is true when
  /// others may still write to `data`, so that each chunk must be opened in private memory.
  bool open_bulk(std::byte* data, std::uint32_t plain, std::uint64_t number, bool shared);

 private:
  Sealing() = default;

  std::unique_ptr<seal::Aead> send_frames_, receive_frames_, send_bulk_, receive_bulk_;
  std::uint64_t sent_ = 0, received_ = 0, messages_ = 0;
  std::vector<std::byte> chunk_;
};

}  // namespace rdma_rpc::session

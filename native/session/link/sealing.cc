// See sealing.h.
#include "session/link/sealing.h"

#include <algorithm>
#include <cstring>

#include "seal/libcrypto.h"

namespace rdma_rpc::session {
namespace {

/// A nonce consists of a 64-bit counter, which never wraps in practice, and the chunk of a bulk message,
/// which is 0 for frames.
seal::Nonce nonce_of(std::uint64_t count, std::uint32_t chunk) {
  seal::Nonce nonce;
  std::memcpy(nonce.data(), &count, sizeof count);
  std::memcpy(nonce.data() + sizeof count, &chunk, sizeof chunk);
  return nonce;
}

}  // namespace

std::unique_ptr<Sealing> Sealing::open(const SealOptions& options, std::string* error) {
  std::unique_ptr<Sealing> sealing(new Sealing());
  const struct {
    std::unique_ptr<seal::Aead>& aead;
    const seal::Key& key;
    bool seals;
  } wanted[] = {
      {sealing->send_frames_, options.send_frames, true},
      {sealing->receive_frames_, options.receive_frames, false},
      {sealing->send_bulk_, options.send_bulk, true},
      {sealing->receive_bulk_, options.receive_bulk, false},
  };
  for (const auto& each : wanted) {
    each.aead = seal::open_aead(options.cipher, each.key, each.seals, error);
    if (each.aead == nullptr) return nullptr;
  }
  return sealing;
}

std::uint32_t Sealing::seal_frame(std::byte* frame, std::uint32_t bytes) {
  const auto sealed = static_cast<std::uint32_t>(bytes + seal::kTagBytes);
  // If sealing fails, the plain text must not be sent. Zeroes are sent in its place, and the peer rejects
  // them.
  if (!send_frames_->seal(nonce_of(sent_++, 0), {frame, bytes}, frame + bytes)) std::memset(frame, 0, sealed);
  return sealed;
}

std::optional<std::uint32_t> Sealing::open_frame(std::byte* frame, std::uint32_t bytes) {
  if (bytes < seal::kTagBytes) return std::nullopt;
  const auto plain = static_cast<std::uint32_t>(bytes - seal::kTagBytes);
  if (!receive_frames_->open(nonce_of(received_++, 0), {frame, plain}, frame + plain)) return std::nullopt;
  return plain;
}

std::uint64_t Sealing::seal_bulk(std::byte* data, std::uint32_t plain) {
  const std::uint64_t number = ++messages_;
  std::byte* tag = data + plain;
  std::uint32_t chunk = 0;
  for (std::uint32_t at = 0; at < plain; ++chunk, tag += seal::kTagBytes) {
    const std::uint32_t bytes = std::min(kSealChunkBytes, plain - at);
    if (!send_bulk_->seal(nonce_of(number, chunk), {data + at, bytes}, tag)) std::memset(data + at, 0, bytes);
    at += bytes;
  }
  return number;
}

bool Sealing::open_bulk(std::byte* data, std::uint32_t plain, std::uint64_t number, bool shared) {
  if (shared) chunk_.resize(kSealChunkBytes);
  std::uint32_t chunk = 0;
  for (std::uint32_t at = 0; at < plain; ++chunk) {
    const std::uint32_t bytes = std::min(kSealChunkBytes, plain - at);
    std::byte tag[seal::kTagBytes];
    std::memcpy(tag, data + plain + std::size_t{chunk} * seal::kTagBytes, sizeof tag);
    std::byte* const here = shared ? chunk_.data() : data + at;
    if (shared) std::memcpy(here, data + at, bytes);
    if (!receive_bulk_->open(nonce_of(number, chunk), {here, bytes}, tag)) return false;
    if (shared) std::memcpy(data + at, here, bytes);
    at += bytes;
  }
  return true;
}

}  // namespace rdma_rpc::session

// Sealed frames and bulk messages under attack: whatever is changed, cut, repeated or moved is found. Seeded;
// RDMA_RPC_SEAL_TRIES sets how many attacks on frames (a million takes seconds).
#include "session/link/sealing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "seal/libcrypto.h"

namespace rdma_rpc::session {
namespace {

using Bytes = std::vector<std::byte>;

#define RDMA_RPC_NEEDS_LIBCRYPTO() \
  if (seal::ciphers().empty()) GTEST_SKIP() << "not run: " << seal::why_no_cipher()

int tries() {
  const char* given = std::getenv("RDMA_RPC_SEAL_TRIES");
  return given == nullptr ? 20'000 : std::atoi(given);
}

/// A message is some hundred times as long as a frame.
constexpr int kBulkTries = 200;

struct Ends {
  std::unique_ptr<Sealing> from, to;
};

Ends make_ends(seal::Cipher cipher) {
  SealOptions one{.cipher = cipher};
  one.send_frames.fill(std::byte{1});
  one.receive_frames.fill(std::byte{2});
  one.send_bulk.fill(std::byte{3});
  one.receive_bulk.fill(std::byte{4});
  const SealOptions other{cipher, one.receive_frames, one.send_frames, one.receive_bulk, one.send_bulk};
  std::string error;
  Ends made{Sealing::open(one, &error), Sealing::open(other, &error)};
  EXPECT_EQ(error, "");
  return made;
}

Bytes random_bytes(std::mt19937_64& random, std::size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void flip(std::mt19937_64& random, Bytes& bytes) {
  bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
}

Bytes sealed_frame(Sealing& by, const Bytes& plain) {
  Bytes frame = plain;
  frame.resize(plain.size() + seal::kTagBytes);
  EXPECT_EQ(by.seal_frame(frame.data(), static_cast<std::uint32_t>(plain.size())), frame.size());
  return frame;
}
std::optional<std::uint32_t> opened(Sealing& by, Bytes& frame) {
  return by.open_frame(frame.data(), static_cast<std::uint32_t>(frame.size()));
}

class Sealed : public testing::TestWithParam<seal::Cipher> {};
INSTANTIATE_TEST_SUITE_P(By, Sealed,
                         testing::Values(seal::Cipher::aes_256_gcm, seal::Cipher::chacha20_poly1305));

TEST_P(Sealed, FramesThatAreChangedCutRepeatedOrMovedAreFound) {
  RDMA_RPC_NEEDS_LIBCRYPTO();
  Ends ends = make_ends(GetParam());
  std::mt19937_64 random(1);
  Bytes before = sealed_frame(*ends.from, random_bytes(random, 48));
  Bytes first = before;
  ASSERT_TRUE(opened(*ends.to, first));
  for (int i = 0; i < tries(); ++i) {
    const Bytes plain = random_bytes(random, 16 + random() % 100);
    Bytes frame = sealed_frame(*ends.from, plain);
    const Bytes as_sent = frame;
    switch (random() % 5) {
      case 0:
        flip(random, frame);
        ASSERT_FALSE(opened(*ends.to, frame)) << "a flipped bit, try " << i;
        break;
      case 1:
        frame.resize(random() % frame.size());
        if (frame.size() < seal::kTagBytes) frame = random_bytes(random, seal::kTagBytes);
        ASSERT_FALSE(opened(*ends.to, frame)) << "cut off, try " << i;
        break;
      case 2: {
        Bytes again = before;
        ASSERT_FALSE(opened(*ends.to, again)) << "the one before once more, try " << i;
        break;
      }
      case 3: {
        Bytes next = sealed_frame(*ends.from, plain);
        ASSERT_FALSE(opened(*ends.to, next)) << "the next one first, try " << i;
        ASSERT_FALSE(opened(*ends.to, frame)) << "the one that was overtaken, try " << i;
        break;
      }
      default:
        ASSERT_EQ(opened(*ends.to, frame), plain.size()) << "untouched, try " << i;
        ASSERT_TRUE(std::equal(plain.begin(), plain.end(), frame.begin()));
        ASSERT_FALSE(std::equal(plain.begin(), plain.end(), as_sent.begin()));
    }
    before = as_sent;
  }
}

TEST_P(Sealed, BulkMessagesThatAreChangedRepeatedOrMovedAreFound) {
  RDMA_RPC_NEEDS_LIBCRYPTO();
  Ends ends = make_ends(GetParam());
  std::mt19937_64 random(2);
  for (int i = 0; i < kBulkTries; ++i) {
    const auto bytes = static_cast<std::uint32_t>(1 + random() % (3 * kSealChunkBytes));
    const Bytes plain = random_bytes(random, bytes);
    const bool shared = random() % 2 == 0;
    Bytes message = plain;
    message.resize(sealed_bytes(bytes));
    std::uint64_t number = ends.from->seal_bulk(message.data(), bytes);
    ASSERT_EQ(plain_bytes(static_cast<std::uint32_t>(message.size())), bytes);
    const auto attack = random() % 4;
    if (attack == 0) flip(random, message);
    if (attack == 1) --number;
    if (attack == 2) {
      // Chunks, and tags of chunks, change places.
      if (bytes < 2 * kSealChunkBytes) continue;
      const auto second = message.begin() + kSealChunkBytes;
      std::swap_ranges(message.begin(), second, second);
      const auto tags = message.begin() + bytes;
      if (random() % 2 == 0) std::swap_ranges(tags, tags + seal::kTagBytes, tags + seal::kTagBytes);
    }
    ASSERT_EQ(ends.to->open_bulk(message.data(), bytes, number, shared), attack == 3) << "try " << i;
    if (attack == 3) {
      ASSERT_TRUE(std::equal(plain.begin(), plain.end(), message.begin()));
    }
  }
}

TEST(Sealing, AesIsThatOfTheStandard) {
  RDMA_RPC_NEEDS_LIBCRYPTO();
  // Case 14 of the GCM specification: all zeros.
  std::string error;
  const auto aead = seal::open_aead(seal::Cipher::aes_256_gcm, {}, true, &error);
  ASSERT_NE(aead, nullptr) << error;
  Bytes block(16), tag(16);
  ASSERT_TRUE(aead->seal({}, block, tag.data()));
  const auto hex = [](const Bytes& bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
      text += "0123456789abcdef"[static_cast<int>(byte) >> 4];
      text += "0123456789abcdef"[static_cast<int>(byte) & 15];
    }
    return text;
  };
  EXPECT_EQ(hex(block), "cea7403d4d606b6e074ec5d3baf39d18");
  EXPECT_EQ(hex(tag), "d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(Sealing, LengthsHaveOneMeaning) {
  for (const std::uint32_t plain :
       {1u, 15u, 16u, 17u, kSealChunkBytes - 1, kSealChunkBytes, kSealChunkBytes + 1, 2 * kSealChunkBytes,
        5 * kSealChunkBytes + 7, 64u << 20}) {
    EXPECT_EQ(plain_bytes(static_cast<std::uint32_t>(sealed_bytes(plain))), plain);
  }
  for (const std::uint32_t sealed : {0u, 1u, 16u}) EXPECT_EQ(plain_bytes(sealed), 0u);
  // A chunk that has a tag and no byte.
  EXPECT_EQ(plain_bytes(static_cast<std::uint32_t>(sealed_bytes(kSealChunkBytes)) + seal::kTagBytes), 0u);
}

}  // namespace
}  // namespace rdma_rpc::session

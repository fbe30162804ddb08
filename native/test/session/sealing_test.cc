// Tests sealed frames and bulk messages under attack: every change, truncation, repetition or move is
// detected. The attacks are seeded. RDMA_RPC_SEAL_TRIES sets the number of attacks on frames (a million takes
// seconds).
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

/// The number of attacks on messages is lower, because messages are some hundred times as long as a frame.
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

std::string hex(const Bytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[static_cast<int>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<int>(byte) & 15];
  }
  return text;
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
      case 1: {
        // The frame stays at least as long as a tag. Shorter frames have a test of their own below.
        frame.resize(seal::kTagBytes + random() % (frame.size() - seal::kTagBytes));
        ASSERT_FALSE(opened(*ends.to, frame)) << "cut off, try " << i;
        break;
      }
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

/// Returns the length of the first frame that was opened although it is shorter than a tag. If no such frame
/// was opened, returns the length of a tag.
int first_short_frame_opened(seal::Cipher cipher) {
  std::uint32_t bytes = 0;
  for (; bytes < seal::kTagBytes; ++bytes) {
    Ends ends = make_ends(cipher);
    Bytes frame = sealed_frame(*ends.from, Bytes(48));
    if (ends.to->open_frame(frame.data(), bytes).has_value()) break;
  }
  return static_cast<int>(bytes);
}

/// This test runs in a separate process: code that removes the tag from such a frame would decrypt four
/// gigabytes, and crash.
TEST_P(Sealed, FramesShorterThanATagAreRefusedAndTakeNoNumber) {
  RDMA_RPC_NEEDS_LIBCRYPTO();
  // One child process tries all lengths, because with sanitizers each fork takes seconds. The exit code of
  // the process is the first length that was not refused.
  EXPECT_EXIT(std::exit(first_short_frame_opened(GetParam())), testing::ExitedWithCode(seal::kTagBytes), "");
  if (testing::Test::HasFailure()) return;
  for (std::uint32_t bytes = 0; bytes < seal::kTagBytes; ++bytes) {
    SCOPED_TRACE(bytes);
    Ends ends = make_ends(GetParam());
    Bytes frame = sealed_frame(*ends.from, Bytes(48));
    Bytes short_frame(frame.begin(), frame.begin() + bytes);
    EXPECT_FALSE(opened(*ends.to, short_frame));
    EXPECT_EQ(opened(*ends.to, frame), 48u);
  }
}

/// The peer can write to such memory until the message is delivered. The peer must not see a decrypted byte,
/// or change a byte between the check of its tag and its use. Each chunk is therefore decrypted in a copy,
/// which is written back when the chunk is authentic.
TEST_P(Sealed, BulkThatThePeerCanReachIsNotOpenedWhereItLies) {
  RDMA_RPC_NEEDS_LIBCRYPTO();
  Ends ends = make_ends(GetParam());
  std::mt19937_64 random(3);
  for (const std::uint32_t bytes : {1u, 1000u, kSealChunkBytes, 2 * kSealChunkBytes + 5}) {
    SCOPED_TRACE(bytes);
    const Bytes plain = random_bytes(random, bytes);
    Bytes message = plain;
    message.resize(sealed_bytes(bytes));
    const std::uint64_t number = ends.from->seal_bulk(message.data(), bytes);
    // Changes the tag of the last chunk; the chunks before it are decrypted.
    Bytes changed = message;
    changed.back() ^= std::byte{1};
    const Bytes as_sent = changed;
    ASSERT_FALSE(ends.to->open_bulk(changed.data(), bytes, number, true));
    const std::size_t last = (bytes - 1) / kSealChunkBytes * kSealChunkBytes;
    EXPECT_TRUE(std::equal(as_sent.begin() + static_cast<std::ptrdiff_t>(last), as_sent.end(),
                           changed.begin() + static_cast<std::ptrdiff_t>(last)))
        << "decrypted where the peer can see it";
    ASSERT_TRUE(ends.to->open_bulk(message.data(), bytes, number, true));
    EXPECT_TRUE(std::equal(plain.begin(), plain.end(), message.begin()));
  }
}

/// Another program (Python's cryptography) created these bytes from docs/wire/connections.md, because two
/// ends that are built from one source would agree on any mistake.
TEST_P(Sealed, BytesAreThoseOfTheSpecification) {
  RDMA_RPC_NEEDS_LIBCRYPTO();
  const bool aes = GetParam() == seal::Cipher::aes_256_gcm;
  Ends ends = make_ends(GetParam());
  Bytes plain(16);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i);
  EXPECT_EQ(hex(sealed_frame(*ends.from, plain)),
            aes ? "bf349adf713e05b89b70984e7d29cf4ef7b39eb975ef9cd05c9d4a9ae3e13fbf"
                : "01264fd2ea5710c50cf26386a2a9555d5be626e463a7c0ace93283d3f40267a5");
  EXPECT_EQ(hex(sealed_frame(*ends.from, plain)),
            aes ? "57961e3b2c5bf95ddf2ca7b9aa1ef26cad7b340d02157393c91e67b5c5ea4097"
                : "0252ac63324d2ce251c4295115f4dd38154d6e2eb6cd24a2aec6dd706d84fa7f");
  // The message has two chunks, the second of five bytes, followed by the tags of both.
  const std::uint32_t bytes = kSealChunkBytes + 5;
  Bytes message(sealed_bytes(bytes));
  for (std::size_t i = 0; i < bytes; ++i) message[i] = static_cast<std::byte>(i % 251);
  EXPECT_EQ(ends.from->seal_bulk(message.data(), bytes), 1u);
  EXPECT_EQ(hex({message.begin() + kSealChunkBytes, message.end()}),
            aes ? "c4e1d589c04ddd7af5bac7dca047c2326c70d47ab0f123e3d3e2c83114c25ab91de4002bfd"
                : "a80f2c51c16d1706b2e514ac1ec8e109a99d7ebbacf2c3dd266068d062bee4d923e673684b");
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
      // Swaps chunks, and tags of chunks.
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
  // This is case 14 of the GCM specification, which consists of zeros only.
  std::string error;
  const auto aead = seal::open_aead(seal::Cipher::aes_256_gcm, {}, true, &error);
  ASSERT_NE(aead, nullptr) << error;
  Bytes block(16), tag(16);
  ASSERT_TRUE(aead->seal({}, block, tag.data()));
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
  // A chunk with a tag but no bytes.
  EXPECT_EQ(plain_bytes(static_cast<std::uint32_t>(sealed_bytes(kSealChunkBytes)) + seal::kTagBytes), 0u);
}

}  // namespace
}  // namespace rdma_rpc::session

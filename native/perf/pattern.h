// Generates the content of messages in tests that validate: bytes derived from a seed and the message's
// number. The bytes reveal damage, and messages that are lost, late, duplicated or in a wrong slot. This file
// is used by the loops of both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace rdma_rpc::perf {

class Pattern {
 public:
  /// `stream` distinguishes queue pairs and directions.
  Pattern(std::uint64_t seed, std::uint64_t stream) : base_(mix(seed ^ mix(stream + 1))) {}

  void fill(std::span<std::byte> bytes, std::uint64_t message) const {
    each(bytes.size(), message, [&](std::size_t at, std::uint64_t word, std::size_t length) {
      std::memcpy(bytes.data() + at, &word, length);
      return true;
    });
  }

  /// Returns the index of the first byte that differs.
  std::optional<std::size_t> difference(std::span<const std::byte> bytes, std::uint64_t message) const {
    std::optional<std::size_t> found;
    each(bytes.size(), message, [&](std::size_t at, std::uint64_t word, std::size_t length) {
      if (std::memcmp(bytes.data() + at, &word, length) == 0) return true;
      std::byte wanted[sizeof word];
      std::memcpy(wanted, &word, sizeof word);
      std::size_t i = 0;
      while (bytes[at + i] == wanted[i]) ++i;
      found = at + i;
      return false;
    });
    return found;
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  template <class See>
  void each(std::size_t size, std::uint64_t message, See see) const {
    std::uint64_t word = mix(base_ + message);
    for (std::size_t at = 0; at < size; at += sizeof word) {
      if (!see(at, word, size - at < sizeof word ? size - at : sizeof word)) return;
      word = word * 6364136223846793005 + 1442695040888963407;
    }
  }

  std::uint64_t base_;
};

}  // namespace rdma_rpc::perf

// Guesses how large a method's next response will be, so that a request can carry the reply buffer for it and the
// server need not ask. Small and large requests of a method are told apart: one that answers as much as it is
// sent, as an echo or a transformation does, would otherwise lend the memory of a large answer to each small
// call. Owned by the context, called by its sessions on the context's thread.
#pragma once

#include <array>
#include <cstdint>

namespace rdma_rpc::session {

/// Whether a request was sent in slots, or did not fit them.
enum class RequestSize { small, large };

class ResponsePredictor {
 public:
  /// Bytes to offer with a request of this method; 0 when the response will likely fit a slot.
  std::uint32_t expected(std::uint32_t method, RequestSize request) const {
    const std::uint32_t key = key_of(method, request);
    const Entry& entry = entries_[place_of(key)];
    return entry.key == key ? entry.bytes : 0;
  }
  /// The application knows it before there was an answer to learn from. Answers are learned from as ever.
  void expect(std::uint32_t method, std::uint32_t bytes) {
    for (const RequestSize request : {RequestSize::small, RequestSize::large}) {
      const std::uint32_t key = key_of(method, request);
      entries_[place_of(key)] = {key, bytes};
    }
  }
  /// A response of `bytes` came; `bulk`: it did not fit a slot.
  void learn(std::uint32_t method, RequestSize request, std::uint32_t bytes, bool bulk) {
    const std::uint32_t key = key_of(method, request);
    Entry& entry = entries_[place_of(key)];
    if (entry.key != key) {
      if (!bulk) return;  // small answers need no entry
      entry = {key, 0};
    }
    if (!bulk) bytes = 0;
    if (bytes >= entry.bytes) {
      entry = {key, bytes};
      return;
    }
    // Never by a part: an answer a little longer than its reply buffer is as bad as one without. A reply buffer offered in
    // vain costs a bind and an invalidate, one asked for a round trip; so what some large ones came among is
    // kept.
    if (bytes > entry.next) entry.next = bytes;
    if (++entry.smaller == kRemembered) entry = {key, entry.next};
  }

 private:
  /// Answers, one after the other and all of them smaller, until the largest of them is expected.
  static constexpr std::uint32_t kRemembered = 8;
  struct Entry {
    std::uint32_t key = 0, bytes = 0;
    std::uint32_t next = 0;     ///< the largest since an answer was as large as expected
    std::uint32_t smaller = 0;  ///< how many have come since then
  };
  static std::uint32_t key_of(std::uint32_t method, RequestSize request) {
    return request == RequestSize::large ? ~method : method;
  }
  /// Each key has two places, by parts of its number that have nothing to do with each other: numbers are
  /// hashes, and two busy methods that meet in one place would make each other be forgotten with each answer.
  static constexpr std::uint32_t kPlaces = 256;
  std::uint32_t place_of(std::uint32_t key) const {
    const std::uint32_t first = key % kPlaces, second = (key >> 16) % kPlaces;
    const bool takes_second =
        entries_[second].key == key || (entries_[first].key != key && entries_[first].key != 0);
    return takes_second ? second : first;
  }
  std::array<Entry, kPlaces> entries_;
};

}  // namespace rdma_rpc::session

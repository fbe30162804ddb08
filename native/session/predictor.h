// Guesses how large a method's next response will be, so that a request can carry the sink for it and the
// server need not ask. Owned by the context, called by its sessions on the context's thread.
#pragma once

#include <array>
#include <cstdint>

namespace rdma_rpc::session {

class ResponsePredictor {
 public:
  /// Bytes to offer with a request of this method; 0: the response will likely fit a slot.
  std::uint32_t expected(std::uint32_t method) const {
    const Entry& entry = at(method);
    return entry.method == method ? entry.bytes : 0;
  }
  /// Somebody who knows says so before there was an answer to learn from; answers are learned from as ever.
  void expect(std::uint32_t method, std::uint32_t bytes) { entries_[place_of(method)] = {method, bytes}; }
  /// A response of `bytes` came; `bulk`: it did not fit a slot.
  void learn(std::uint32_t method, std::uint32_t bytes, bool bulk) {
    Entry& entry = entries_[place_of(method)];
    if (entry.method != method) {
      if (!bulk) return;  // a method of small answers needs no entry
      entry = {method, 0};
    }
    if (!bulk) bytes = 0;
    if (bytes >= entry.bytes) {
      entry = {method, bytes};
      return;
    }
    // Never by a part: an answer a little longer than its sink is as bad as one without. A sink offered in
    // vain costs a bind and an invalidate, one asked for a round trip; so what some large ones came among is
    // kept.
    if (bytes > entry.next) entry.next = bytes;
    if (++entry.smaller == kRemembered) entry = {method, entry.next};
  }

 private:
  /// Answers, one after the other and all of them smaller, until the largest of them is expected.
  static constexpr std::uint32_t kRemembered = 8;
  struct Entry {
    std::uint32_t method = 0, bytes = 0;
    std::uint32_t next = 0;     ///< the largest since an answer was as large as expected
    std::uint32_t smaller = 0;  ///< how many have come since then
  };
  /// Each method has two places, by parts of its number that have nothing to do with each other: numbers are
  /// hashes, and two busy methods that meet in one place would make each other be forgotten with each answer.
  static constexpr std::uint32_t kPlaces = 256;
  std::uint32_t place_of(std::uint32_t method) const {
    const std::uint32_t first = method % kPlaces, second = (method >> 16) % kPlaces;
    const bool takes_second = entries_[second].method == method ||
                              (entries_[first].method != method && entries_[first].method != 0);
    return takes_second ? second : first;
  }
  const Entry& at(std::uint32_t method) const { return entries_[place_of(method)]; }
  std::array<Entry, kPlaces> entries_;
};

}  // namespace rdma_rpc::session

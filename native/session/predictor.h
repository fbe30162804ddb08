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
  void expect(std::uint32_t method, std::uint32_t bytes) {
    entries_[method % entries_.size()] = {method, bytes};
  }
  /// A response of `bytes` came; `bulk`: it did not fit a slot.
  void learn(std::uint32_t method, std::uint32_t bytes, bool bulk) {
    Entry& entry = entries_[method % entries_.size()];
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
  const Entry& at(std::uint32_t method) const { return entries_[method % entries_.size()]; }
  std::array<Entry, 256> entries_;
};

}  // namespace rdma_rpc::session

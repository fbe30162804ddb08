// Predicts the size of a method's next response, so that the request can carry a reply buffer and the server
// need not ask for one. Small and large requests of a method are predicted separately. Otherwise a method
// whose responses are as large as its requests, such as an echo, would provide a large reply buffer for each
// small call. The context owns this object, and its sessions call it on the context's thread.
#pragma once

#include <array>
#include <cstdint>

namespace rdma_rpc::session {

/// Says whether a request fits the slots.
enum class RequestSize { small, large };

class ResponsePredictor {
 public:
  /// Returns the size of the reply buffer for a request of this method, or 0 when the response will probably
  /// fit a slot.
  std::uint32_t expected(std::uint32_t method, RequestSize request) const {
    const std::uint32_t key = key_of(method, request);
    const Entry& entry = entries_[index_of(key)];
    return entry.key == key ? entry.bytes : 0;
  }
  /// Sets the size that the application expects before the first response. Later responses change the
  /// prediction as usual.
  void expect(std::uint32_t method, std::uint32_t bytes) {
    for (const RequestSize request : {RequestSize::small, RequestSize::large}) {
      const std::uint32_t key = key_of(method, request);
      entries_[index_of(key)] = {key, bytes};
    }
  }
  /// Records a response of `bytes` bytes. `bulk` is true when it did not fit a slot.
  void learn(std::uint32_t method, RequestSize request, std::uint32_t bytes, bool bulk) {
    const std::uint32_t key = key_of(method, request);
    Entry& entry = entries_[index_of(key)];
    if (entry.key != key) {
      if (!bulk) return;  // small answers need no entry
      entry = {key, 0};
    }
    if (!bulk) bytes = 0;
    if (bytes >= entry.bytes) {
      entry = {key, bytes};
      return;
    }
    // The prediction is never reduced by a part. A response that is a little longer than its reply buffer is
    // as slow as one without a reply buffer. An unused reply buffer costs a bind and an invalidation; a
    // requested reply buffer costs a round trip. The size is therefore kept while some responses are large.
    if (bytes > entry.next) entry.next = bytes;
    if (++entry.smaller == kRemembered) entry = {key, entry.next};
  }

 private:
  /// After this number of consecutive smaller responses, the largest of them is predicted.
  static constexpr std::uint32_t kRemembered = 8;
  struct Entry {
    std::uint32_t key = 0, bytes = 0;
    std::uint32_t next = 0;     ///< the largest response since the last one that was as large as expected
    std::uint32_t smaller = 0;  ///< number of smaller responses since that response
  };
  static std::uint32_t key_of(std::uint32_t method, RequestSize request) {
    return request == RequestSize::large ? ~method : method;
  }
  /// Each key has two possible slots, chosen by independent parts of its number, because keys are hashes. Two
  /// busy methods that shared their only slot would evict each other with each response.
  static constexpr std::uint32_t kEntries = 256;
  std::uint32_t index_of(std::uint32_t key) const {
    const std::uint32_t first = key % kEntries, second = (key >> 16) % kEntries;
    const bool takes_second =
        entries_[second].key == key || (entries_[first].key != key && entries_[first].key != 0);
    return takes_second ? second : first;
  }
  std::array<Entry, kEntries> entries_;
};

}  // namespace rdma_rpc::session

// Keeps the streams of one session whose large messages wait for memory of the client. The client grants
// memory when its application reaches the message. This class measures for how long each stream has had no
// grant. PeerWatch owns this object and uses it on the context's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rdma_rpc::session {

class UnreadStreams {
 public:
  /// Records that this side has requested memory for one more message of the stream.
  void asked(std::uint32_t stream, std::uint64_t awake_ns) {
    const auto found = find(stream);
    if (found == streams_.end())
      streams_.push_back({stream, 1, awake_ns});
    else
      ++found->messages;
  }
  /// Records that the client has granted memory for one message. The waiting time of the stream's other
  /// messages starts again.
  void granted(std::uint32_t stream, std::uint64_t awake_ns) {
    if (const auto found = find(stream); found != streams_.end()) found->since_ns = awake_ns;
  }
  /// Records that one message of the stream no longer waits, whether memory was granted for it or not.
  void ended(std::uint32_t stream) {
    const auto found = find(stream);
    if (found == streams_.end() || --found->messages != 0) return;
    *found = streams_.back();
    streams_.pop_back();
  }

  struct Longest {
    std::uint32_t stream = 0;
    std::uint64_t ns = 0;  ///< time without a grant; 0 when no stream waits
  };
  Longest longest(std::uint64_t awake_ns) const {
    Longest longest;
    for (const Stream& each : streams_) {
      if (awake_ns - each.since_ns > longest.ns) longest = {each.stream, awake_ns - each.since_ns};
    }
    return longest;
  }

 private:
  struct Stream {
    std::uint32_t stream, messages;
    std::uint64_t since_ns;  ///< time of the last grant, or of the first request, on the awake clock
  };
  std::vector<Stream>::iterator find(std::uint32_t stream) {
    return std::find_if(streams_.begin(), streams_.end(),
                        [stream](const Stream& each) { return each.stream == stream; });
  }
  /// The list is short, because a session has at most `streamsMax` streams. The memory of the list is kept,
  /// so the list rarely allocates.
  std::vector<Stream> streams_;
};

}  // namespace rdma_rpc::session

// The streams of one session whose large messages wait until the client grants memory for them, which it does
// when its application comes to them: how long each stream has gone without a grant. Owned by PeerWatch, on
// the context's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rdma_rpc::session {

class UnreadStreams {
 public:
  /// The client has been asked for memory for one more message of the stream.
  void asked(std::uint32_t stream, std::uint64_t awake_ns) {
    const auto found = find(stream);
    if (found == streams_.end())
      streams_.push_back({stream, 1, awake_ns});
    else
      ++found->messages;
  }
  /// It has granted some, so the messages behind that one have waited for its reader since now.
  void granted(std::uint32_t stream, std::uint64_t awake_ns) {
    if (const auto found = find(stream); found != streams_.end()) found->since_ns = awake_ns;
  }
  /// One message of the stream, granted or not, waits no more.
  void ended(std::uint32_t stream) {
    const auto found = find(stream);
    if (found == streams_.end() || --found->messages != 0) return;
    *found = streams_.back();
    streams_.pop_back();
  }

  struct Longest {
    std::uint32_t stream = 0;
    std::uint64_t ns = 0;  ///< without a grant; 0 when no stream waits
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
    std::uint64_t since_ns;  ///< on the awake clock: the last grant, or the first question behind it
  };
  std::vector<Stream>::iterator find(std::uint32_t stream) {
    return std::find_if(streams_.begin(), streams_.end(),
                        [stream](const Stream& each) { return each.stream == stream; });
  }
  /// Few, since a session has `streamsMax` streams. The memory is kept, so this allocates seldom.
  std::vector<Stream> streams_;
};

}  // namespace rdma_rpc::session
